import { generateKeyPairSync, randomBytes } from "node:crypto";
import { CertificateAuthority } from "@forage/identity/ca";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { forageService } from "../../coordinator/src/api/forage/service.ts";
import { readConfig } from "../../coordinator/src/config.ts";
import { type Core, startCore } from "../../coordinator/src/core.ts";
import { encodeRecord } from "../../coordinator/src/model/codec.ts";
import { nodeKey } from "../../coordinator/src/model/keys.ts";
import { IdentityIssuer } from "../../coordinator/src/objects/identity-issuer.ts";
import { openVault } from "../../coordinator/src/objects/open-vault.ts";
import { createMemoryStore, type Store } from "../../coordinator/src/store/index.ts";
import { systemClock } from "../../coordinator/src/time/clock.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { requestsFor, requestsForWaiting } from "./apply-pods.ts";
import { HEARTBEAT_MS, LocalAgent } from "./local-agent.ts";

const WARM_UPS = 300;
const EVENTS = 3_000;
/** The number of measured changes beside waiting pods. */
const WAITING_EVENTS = 1_000;
const LIMIT_MS = 1_200_000;
const AT_ONCE = 2_500;

/**
 * Measures the coordinator's work when one pod of an idle fleet changes, in this process and without sockets and disk.
 */
export async function measureLocalEvents(
  { nodes, podsPerNode }: { readonly nodes: number; readonly podsPerNode: number },
  waiting: number,
  result: Record<string, number>,
): Promise<void> {
  const store = createMemoryStore({ clock: systemClock });
  for (let index = 0; index < nodes; index++) await putNode(store, `n${index}`);
  globalThis.gc?.();
  const emptyBytes = process.memoryUsage().heapUsed;
  const core = await openCore(store);
  const gone = new AbortController();
  const agents: LocalAgent[] = [];
  try {
    while (agents.length < nodes) {
      agents.push(new LocalAgent(`n${agents.length}`, core));
      if (agents.length % AT_ONCE === 0) await untilReported(core, agents.length);
    }
    const pods = nodes * podsPerNode;
    const forage = forageService(core.services.forage);
    const caller = { type: "user", name: "bench", grants: [{ role: "admin", namespaces: "*" }] } as const;
    const context = { method: "", caller, peer: "", signal: gone.signal };
    for (const request of requestsFor(pods)) await forage.applyResources(request, context);
    const isRest = async (): Promise<boolean> =>
      core.state.pods().length === pods &&
      core.state.activeRollouts().length === 0 &&
      core.state.pods().every(({ status }) => status?.ready);
    await waitFor(isRest, { what: `${pods} pods are ready`, limitMs: LIMIT_MS, everyMs: 500 });
    globalThis.gc?.();
    const perPodBytes = (process.memoryUsage().heapUsed - emptyBytes) / pods;
    await flip(agents, core, WARM_UPS);
    result[`${nodes} nodes: processor time a change of one pod (µs)`] = await flip(agents, core, EVENTS);
    if (waiting > 0) {
      for (const request of requestsForWaiting(waiting)) await forage.applyResources(request, context);
      const isKnown = async (): Promise<boolean> => {
        const pods = core.state.unboundPods();
        return (
          pods.length === waiting && pods.every(({ record }) => core.control.unschedulable.get(record.uid))
        );
      };
      await waitFor(isKnown, { what: `${waiting} pods wait for a node`, limitMs: LIMIT_MS, everyMs: 200 });
      const name = `${nodes} nodes, ${waiting} pods waiting: processor time a change of one pod (µs)`;
      await flip(agents, core, WARM_UPS);
      result[name] = await flip(agents, core, WAITING_EVENTS);
    }
    if (globalThis.gc !== undefined)
      result[`${nodes} nodes: heap a pod, agent included (kB)`] = perPodBytes / 1000;
  } finally {
    for (const agent of agents) agent.stop();
    gone.abort();
    core.stopSessions();
    await core.close();
    await store.close();
  }
}

/**
 * Waits until that many agents have reported. Agents of one process all connect in one turn of the event loop, which
 * delays the coordinator.
 */
async function untilReported(core: Core, count: number): Promise<void> {
  const isDone = (): boolean =>
    core.state.nodes().filter(({ report }) => report !== undefined).length >= count;
  await waitFor(isDone, { what: `${count} nodes have reported`, limitMs: LIMIT_MS });
}

/**
 * Returns the microseconds of processor time per change. Changes are made one after another, each until the view
 * includes it.
 */
async function flip(agents: readonly LocalAgent[], core: Core, count: number): Promise<number> {
  const before = process.cpuUsage();
  const busy = agents.filter(({ pods }) => pods > 0);
  for (let index = 0; index < count; index++) {
    const pod = busy[(index * 7919) % busy.length]?.flip();
    if (pod === undefined) throw new Error("no node has pods");
    while (core.state.podByUid(pod.uid)?.status?.ready !== pod.ready)
      await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

async function putNode(store: Store, name: string): Promise<void> {
  const value = encodeRecord(NodeRecord, NodeRecord.fromPartial({ name, serials: ["01"] }));
  await store.txn([], [{ type: "put", key: nodeKey(name), value }]);
}

export async function openCore(store: Store): Promise<Core> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const clock = systemClock;
  return startCore({
    // All agents share this process with the coordinator, so their messages may be late.
    config: {
      ...readConfig(["--data-dir", "/nonexistent"], {}),
      heartbeatIntervalSeconds: HEARTBEAT_MS / 1000,
    },
    store,
    epoch: 1,
    lineage: "lineage-1",
    clusterId: "bench",
    authority: await CertificateAuthority.create("bench", { nowMs: clock.nowMs, randomBytes }),
    vault: await openVault([{ id: "bench", bytes: randomBytes(32) }], store),
    issuer: new IdentityIssuer({ issuer: "bench", keys: [privateKey] }),
    clock,
    log: pino({ level: "silent" }),
    // The same as in the coordinator. With fewer letters, names of 10,000 pods of one service would collide too often.
    randomName: (length) => Array.from(randomBytes(length), (byte) => (byte % 36).toString(36)).join(""),
    randomBytes,
    defer: (run) => setImmediate(run),
    onFatal: (error) => {
      throw error;
    },
  });
}
