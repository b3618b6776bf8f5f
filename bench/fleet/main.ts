import { parseArgs } from "node:util";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { cpuSeconds, idlePercent, residentMb } from "../apply/process-cost.ts";
import { applyPods } from "./apply-pods.ts";
import { type CoordinatorProcess, startCoordinatorProcess } from "./coordinator-process.ts";
import { eventCount } from "./event-count.ts";
import { measureEventWatchers } from "./event-watchers.ts";
import { measureHalfRolled } from "./half-rolled.ts";
import { measureLoadBalancers } from "./load-balancers.ts";
import { measureLocalEvents } from "./local-events.ts";
import { DEFAULT_HOST } from "./pod-answers.ts";
import { measureReturning } from "./returning.ts";
import { measureStart } from "./seeded-store.ts";
import { SocketAgents } from "./socket-agents.ts";
import { measureWaitingRemoved } from "./waiting-removed.ts";
import { measureWatchers } from "./watchers.ts";

type Result = Record<string, number>;

const APPLY_LIMIT_MS = 600_000;
const IDLE_SECONDS = 20;

/**
 * Measures a fleet of agents without hosts: the speed at which many pods reach their nodes, and the cost of one small
 * change as the fleet grows.
 */
export async function main(): Promise<void> {
  const number = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      agents: number,
      pods: number,
      applies: number,
      sizes: number,
      "pods-per-node": number,
      waiting: number,
      rolled: number,
      balanced: number,
      removed: number,
      stored: number,
      returning: number,
      "idle-minutes": number,
      watchers: number,
      "event-watchers": number,
    },
  });
  const result: Result = {};
  try {
    await measureAll(values, result);
  } finally {
    // A part that fails must not lose the figures of the others.
    print(result);
  }
}

async function measureAll(
  values: Readonly<Record<string, string | undefined>>,
  result: Result,
): Promise<void> {
  const agents = Number(values.agents ?? 1_000);
  const pods = Number(values.pods ?? 10 * agents);
  if (agents > 0) await measureApplies(agents, { pods, applies: Number(values.applies ?? 1) }, result);
  const waiting = Number(values.waiting ?? 1_000);
  const sizes = (values.sizes ?? "100,1000,5000").split(",").map(Number);
  const podsPerNode = Number(values["pods-per-node"] ?? 10);
  for (const nodes of sizes.filter((size) => size > 0))
    await measureLocalEvents({ nodes, podsPerNode }, waiting, result);
  const rolled = (values.rolled ?? "1000,10000").split(",").map(Number);
  for (const replicas of rolled.filter((size) => size > 0)) await measureHalfRolled(replicas, result);
  const removed = (values.removed ?? "1000,10000").split(",").map(Number);
  for (const pods of removed.filter((size) => size > 0)) await measureWaitingRemoved(pods, result);
  const balanced = Number(values.balanced ?? 1_000);
  if (balanced > 0) for (const nodes of [100, 5_000]) measureLoadBalancers(nodes, balanced, result);
  const [storedNodes = 0, storedPods = 0] = (values.stored ?? "5000,50000").split(",").map(Number);
  if (storedPods > 0) await measureStart(storedNodes, storedPods, result);
  const [returning = 0, returningPods = 0] = (values.returning ?? "1000,0").split(",").map(Number);
  const idleMinutes = Number(values["idle-minutes"] ?? 0);
  if (returning > 0) await measureReturning({ count: returning, pods: returningPods, idleMinutes }, result);
  const watchers = Number(values.watchers ?? 5_000);
  if (watchers > 0) await measureWatchers(watchers, result);
  const eventWatchers = Number(values["event-watchers"] ?? 5_000);
  if (eventWatchers > 0) await measureEventWatchers(eventWatchers, result);
}

function print(result: Result): void {
  const width = Math.max(...Object.keys(result).map((name) => name.length));
  for (const [name, value] of Object.entries(result))
    console.log(`${name.padEnd(width)}  ${value.toFixed(value < 10 ? 3 : 1).padStart(10)}`);
  console.log(JSON.stringify({ bench: "fleet", ...result }));
}

/**
 * Measures applies over sockets with TLS on both sides. The coordinator is a separate process; all agents are in this
 * one. Only the first apply includes V8's compilation of the coordinator.
 */
async function measureApplies(
  count: number,
  { pods, applies }: { readonly pods: number; readonly applies: number },
  result: Result,
): Promise<void> {
  const coordinator = await startCoordinatorProcess();
  // One pod of each host is left over.
  const host = { ...DEFAULT_HOST, pods: Math.ceil((applies * pods) / count) + 1 };
  const agents = new SocketAgents({ host: () => host });
  try {
    const startedMs = performance.now();
    const emptyMb = residentMb(coordinator.pid);
    await agents.start(coordinator, count);
    result[`${count} agents join and connect (s)`] = (performance.now() - startedMs) / 1000;
    const idleMb = residentMb(coordinator.pid);
    result[`coordinator resident, ${count} agents, no pods (MB)`] = idleMb;
    result["coordinator resident, an agent (kB)"] = ((idleMb - emptyMb) * 1000) / count;
    result[`coordinator idle, ${count} agents, no pods (% of a core)`] = await idlePercent(
      coordinator.pid,
      IDLE_SECONDS,
    );
    await measureApply(coordinator, agents, pods, result);
    result[`coordinator resident, ${pods} pods (MB)`] = residentMb(coordinator.pid);
    result["coordinator resident, a pod (kB)"] = ((residentMb(coordinator.pid) - idleMb) * 1000) / pods;
    for (let apply = 2; apply <= applies; apply++) {
      const before = cpuSeconds(coordinator.pid);
      await applyPods(coordinator, pods, `bench-${apply}`);
      result[`coordinator's processor time a pod, apply ${apply} (ms)`] =
        ((cpuSeconds(coordinator.pid) - before) * 1000) / pods;
    }
    await measureRestart(coordinator, agents, result);
  } finally {
    agents.close();
    await coordinator.close();
  }
}

async function measureApply(
  coordinator: CoordinatorProcess,
  agents: SocketAgents,
  pods: number,
  result: Result,
): Promise<void> {
  const before = cpuSeconds(coordinator.pid);
  const appliedMs = performance.now();
  const given = waitFor(async () => agents.given >= pods, {
    what: "all pods are given to their nodes",
    limitMs: APPLY_LIMIT_MS,
    everyMs: 20,
  }).then(() => performance.now());
  const [givenMs] = await Promise.all([given, applyPods(coordinator, pods)]);
  const seconds = (givenMs - appliedMs) / 1000;
  result[`apply → ${pods} pods on their nodes (s)`] = seconds;
  result["pods on their nodes, a second"] = pods / seconds;
  const doneSeconds = (performance.now() - appliedMs) / 1000;
  result[`apply → all acknowledged, rollout succeeded (s)`] = doneSeconds;
  result["pods acknowledged, a second"] = pods / doneSeconds;
  result["coordinator's processor time a pod (ms)"] = ((cpuSeconds(coordinator.pid) - before) * 1000) / pods;
}

/**
 * Measures the return of agents after the coordinator was killed. They reconnect by themselves, and their pods must not
 * count as lost.
 */
async function measureRestart(
  coordinator: CoordinatorProcess,
  agents: SocketAgents,
  result: Result,
): Promise<void> {
  const killedMs = performance.now();
  let back = 0;
  const returning = agents.reconnect(coordinator.address, () => back++);
  await coordinator.restart();
  result["killed → takes connections (s)"] = (performance.now() - killedMs) / 1000;
  await waitFor(async () => back >= agents.connected, {
    what: "all agents are back",
    limitMs: APPLY_LIMIT_MS,
    explain: () => `${back} of ${agents.connected} are back`,
  });
  result["killed → all agents back (s)"] = (performance.now() - killedMs) / 1000;
  await returning;
  result["coordinator's processor time until then (s)"] = cpuSeconds(coordinator.pid);
  result["coordinator resident after the restart (MB)"] = residentMb(coordinator.pid);
  result["nodes taken for unreachable"] = await eventCount(coordinator, "NodeUnreachable");
}
