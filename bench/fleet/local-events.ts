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
/** Beside pods that wait. */
const WAITING_EVENTS = 1_000;
const LIMIT_MS = 600_000;

/** Measures, in this process and without sockets and disk, what the coordinator does when one pod of an idle fleet changes. */
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
  const agents = Array.from({ length: nodes }, (_, index) => new LocalAgent(`n${index}`, core, gone.signal));
  try {
    const pods = nodes * podsPerNode;
    const forage = forageService(core.services.forage);
    const caller = { kind: "user", name: "bench", grants: [{ role: "admin", namespaces: "*" }] } as const;
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
    gone.abort();
    core.stopSessions();
    await core.close();
    await store.close();
  }
}

/** Microseconds of processor time each; one after the other, until the view shows it. */
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
  await store.txn([], [{ kind: "put", key: nodeKey(name), value }]);
}

export async function openCore(store: Store): Promise<Core> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const clock = systemClock;
  return startCore({
    // All agents share this process with the coordinator: what they say may be late.
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
    // As the coordinator's own: with fewer letters, names of 10,000 pods of one service collide too often.
    randomName: (length) => Array.from(randomBytes(length), (byte) => (byte % 36).toString(36)).join(""),
    randomBytes,
    defer: (run) => setImmediate(run),
    onFatal: (error) => {
      throw error;
    },
  });
}
