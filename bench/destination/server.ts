import { pino } from "pino";
import { Directory } from "../../coordinator/src/destination/directory.ts";
import { startPlainDestination } from "../../coordinator/src/destination/plain-listener.ts";
import { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import { loadClusterView } from "../../coordinator/src/state/load-view.ts";
import { createMemoryStore } from "../../coordinator/src/store/index.ts";
import { systemClock } from "../../coordinator/src/time/clock.ts";
import { answerLines, sendLine } from "./lines.ts";
import type { FromServer, ToServer } from "./messages.ts";
import { nodeName, nodeOps, podOps, serviceOps, statusOps } from "./records.ts";

const NODES = 10;
const endpoints = Number(process.argv[2]);

/** The coordinator's Destination alone: the real store, view and listener over artificial records. */
const clock = systemClock;
const store = createMemoryStore({ clock });
const state = new ClusterView();
const running = new AbortController();
await store.txn([], serviceOps());
for (let index = 0; index < NODES; index++) await store.txn([], nodeOps(index));
for (let index = 0; index < endpoints; index++) await store.txn([], podOps(index, nodeName(index % NODES)));
const follow = await loadClusterView(store, state);
void follow(running.signal);
for (const { name } of state.nodes())
  state.setNodeHealth(name, { ready: true, message: "", lastSeenMs: clock.nowMs() }, false);

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
    log: pino({ level: "silent" }),
    stopping: running.signal,
    monotonicMs: clock.monotonicMs,
    schedule: clock.schedule,
  },
);

answerLines((message: ToServer) => void change(message));
send({ type: "up", port: listener.address.port });

async function change({ pod, ready }: ToServer): Promise<void> {
  const ops = statusOps(pod, nodeName(pod % NODES), ready);
  const atNs = process.hrtime.bigint();
  await store.txn([], ops);
  send({ type: "changed", atNs: String(atNs) });
}

function send(message: FromServer): void {
  sendLine(message);
}
