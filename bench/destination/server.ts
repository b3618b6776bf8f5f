import { pino } from "pino";
import { systemClock } from "../../coordinator/src/control/clock.ts";
import { Directory } from "../../coordinator/src/destination/directory.ts";
import { startPlainDestination } from "../../coordinator/src/destination/plain-listener.ts";
import { loadState } from "../../coordinator/src/state/follow.ts";
import { State } from "../../coordinator/src/state/state.ts";
import { createMemoryStore } from "../../coordinator/src/store/index.ts";
import { aNode, aPod, aServiceEntry, aWorkloadEntry } from "../../coordinator/test/support/entries.ts";
import { opsOf } from "../../coordinator/test/support/view.ts";
import type { FromServer, ToServer } from "./messages.ts";

const nodes = 10;
const endpoints = Number(process.argv[2]);

/** The coordinator's Destination alone: store, view and listener as they are in it, over records that are made up. */
const clock = systemClock();
const store = createMemoryStore({ clock });
const state = new State();
const log = pino({ level: "silent" });
const hosts = Array.from({ length: nodes }, (_, index) => {
  const labels = { "topology.kubernetes.io/zone": `zone-${index % 3}` };
  return aNode({ name: `node-${index}`, address: `192.0.2.${index + 1}`, labels });
});
const pods = Array.from({ length: endpoints }, (_, index) => podOf(index, true));
for (const op of opsOf({ resources: [aWorkloadEntry(), aServiceEntry()], pods, nodes: hosts })) {
  await store.txn([], [op]);
}
const follow = await loadState(store, state);
void follow(new AbortController().signal);
for (const { name, health } of hosts) state.setNodeHealth(name, health, false);

const directory = new Directory({
  state,
  domain: "cluster.local",
  virtualIps: () => [],
  defer: (run) => setImmediate(run),
});
const listener = await startPlainDestination(
  { host: "127.0.0.1", port: 0 },
  { directory, authorize: false },
  {
    identify: () => ({ kind: "nobody" }) as never,
    log,
    stopping: new AbortController().signal,
    monotonicMs: clock.monotonicMs,
  },
  { "grpc.max_concurrent_streams": 10_000, "grpc.keepalive_time_ms": 20_000 },
);

process.on("message", (message: ToServer) => void answer(message));
send({ kind: "up", port: listener.address.port });

async function answer(message: ToServer): Promise<void> {
  if (message.kind === "usage") {
    const { user, system } = process.cpuUsage();
    send({ kind: "usage", cpuUs: user + system, residentBytes: process.memoryUsage.rss() });
    return;
  }
  const ops = opsOf({ pods: [podOf(message.pod, message.ready)] });
  const atNs = process.hrtime.bigint();
  await store.txn([], ops);
  send({ kind: "changed", atNs: String(atNs) });
}

function podOf(index: number, ready: boolean) {
  const hostPorts = [{ container: "main", containerPort: 8080, protocol: "TCP", hostPort: 20_000 + index }];
  return aPod({ name: `web-${index}`, node: `node-${index % nodes}`, status: { ready, hostPorts } });
}

function send(message: FromServer): void {
  process.send?.(message);
}
process.on("disconnect", () => process.exit(0));
