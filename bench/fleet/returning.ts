import { setTimeout as delay } from "node:timers/promises";
import { anonymousMb, cpuSeconds, idlePercent, residentMb } from "../apply/process-cost.ts";
import { AgentPrograms } from "./agent-programs.ts";
import { applyPods } from "./apply-pods.ts";
import { type CoordinatorProcess, startCoordinatorProcess } from "./coordinator-process.ts";
import { eventCount } from "./event-count.ts";

/** The time after the last connection until all agents use the large fleet's longer interval of heartbeats. */
const SETTLE_MS = 15_000;
const IDLE_SECONDS = 30;
/** The further time until code is compiled and most of the garbage of the connections is collected. */
const SETTLED_MS = 30_000;
const SETTLED_SECONDS = 60;

/** The interval at which the memory of a long idle period is read. */
const SAMPLE_SECONDS = 20;

export interface ReturningOptions {
  /** The number of agents. */
  readonly count: number;
  /** The number of pods that are deployed before the measurement. */
  readonly pods: number;
  /** The length of a further idle period, which includes a backup and full collections. 0: none. */
  readonly idleMinutes: number;
}

/**
 * Measures a coordinator with `count` idle agents, each on a TLS connection with its own address, and their return
 * after the coordinator was killed. The agents are in separate programs. Their processor time is measured too, because
 * they share the machine.
 */
export async function measureReturning(
  { count, pods, idleMinutes }: ReturningOptions,
  result: Record<string, number>,
): Promise<void> {
  const coordinator = await startCoordinatorProcess();
  let agents: AgentPrograms | undefined;
  try {
    agents = await AgentPrograms.join(coordinator, count);
    const emptyMb = residentMb(coordinator.pid);
    agents.start(coordinator);
    await agents.connected(1);
    if (pods > 0) await applyPods(coordinator, pods);
    await delay(SETTLE_MS);
    const what = `${count} agents in ${agents.programs} programs`;
    result[`${what}: coordinator idle (% of a core)`] = await idlePercent(coordinator.pid, IDLE_SECONDS);
    result[`${what}: coordinator resident (MB)`] = residentMb(coordinator.pid);
    result[`${what}: without mapped files (MB)`] = anonymousMb(coordinator.pid);
    result[`${what}: resident, an agent (kB)`] = ((residentMb(coordinator.pid) - emptyMb) * 1000) / count;
    await delay(SETTLED_MS);
    result[`${what}: coordinator idle, settled (% of a core)`] = await idlePercent(
      coordinator.pid,
      SETTLED_SECONDS,
    );
    result[`${what}: coordinator resident, settled (MB)`] = residentMb(coordinator.pid);
    result[`${what}: resident before the first connection (MB)`] = emptyMb;
    if (idleMinutes > 0) await measureIdle(coordinator, { what, minutes: idleMinutes }, result);
    await measureReturn(coordinator, agents, { count, what }, result);
  } finally {
    agents?.stop();
    await coordinator.close();
  }
}

/** Measures an idle period with everything that happens in it, such as backups and full collections. */
async function measureIdle(
  coordinator: CoordinatorProcess,
  { what, minutes }: { readonly what: string; readonly minutes: number },
  result: Record<string, number>,
): Promise<void> {
  const percents: number[] = [];
  const residents: number[] = [];
  while (percents.length * SAMPLE_SECONDS < minutes * 60) {
    percents.push(await idlePercent(coordinator.pid, SAMPLE_SECONDS));
    residents.push(residentMb(coordinator.pid));
  }
  const period = `${what}: ${minutes} more minutes`;
  const sorted = percents.toSorted((a, b) => a - b);
  result[`${period}, idle on average (% of a core)`] =
    percents.reduce((sum, it) => sum + it, 0) / percents.length;
  result[`${period}, idle, median of ${SAMPLE_SECONDS} s (% of a core)`] = sorted[sorted.length >> 1] ?? 0;
  result[`${period}, highest resident (MB)`] = Math.max(...residents);
  result[`${period}, resident at the end (MB)`] = residents.at(-1) ?? 0;
}

async function measureReturn(
  coordinator: CoordinatorProcess,
  agents: AgentPrograms,
  { count, what }: { readonly count: number; readonly what: string },
  result: Record<string, number>,
): Promise<void> {
  const killedMs = performance.now();
  const sinceKill = (): number => (performance.now() - killedMs) / 1000;
  const before = { cpu: agents.cpuSeconds, failures: agents.sum("failures") };
  await coordinator.restart();
  const started = { agents: agents.cpuSeconds, coordinator: cpuSeconds(coordinator.pid) };
  result[`${what}: killed → takes connections (s)`] = sinceKill();
  result[`${what}: coordinator's processor time until then (s)`] = started.coordinator;
  result[`${what}: agents' processor time until then (s)`] = started.agents - before.cpu;
  await agents.connected(2, 0.5);
  result[`${what}: killed → half of the agents back (s)`] = sinceKill();
  await agents.connected(2);
  result[`${what}: killed → all agents back (s)`] = sinceKill();
  result[`${what}: coordinator's processor time for a return (ms)`] =
    ((cpuSeconds(coordinator.pid) - started.coordinator) * 1000) / count;
  result[`${what}: agents' processor time for a return (ms)`] =
    ((agents.cpuSeconds - started.agents) * 1000) / count;
  result[`${what}: coordinator resident after the return (MB)`] = residentMb(coordinator.pid);
  result[`${what}: attempts that failed`] = agents.sum("failures") - before.failures;
  result[`${what}: nodes taken for unreachable`] = await eventCount(coordinator, "NodeUnreachable");
}
