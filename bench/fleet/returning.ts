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

/**
 * Measures a coordinator with `count` idle agents, each on a TLS connection with its own address, and their return
 * after the coordinator was killed. The agents are in separate programs. Their processor time is measured too, because
 * they share the machine.
 */
export async function measureReturning(
  count: number,
  pods: number,
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
    await measureReturn(coordinator, agents, { count, what }, result);
  } finally {
    agents?.stop();
    await coordinator.close();
  }
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
