import { WorkspacePhase } from "@forage/proto/core";
import { waitFor } from "../../hack/lib/wait-for.ts";
import type { System } from "../../hack/system/system.ts";
import type { WorkspaceCalls } from "../../hack/system/workspaces.ts";
import { cpuSeconds, peakMb, resetPeak, residentMb } from "../apply/process-cost.ts";
import { secondsOf } from "./rounds.ts";

const EVERY_MS = 500;
const LIMIT_MS = 1_200_000;
const { RUNNING, STOPPED } = WorkspacePhase;

/** Measures `count` workspaces that start, and then stop with their backups, at the same time on one real host. */
export async function measureBurst(
  system: System,
  calls: WorkspaceCalls,
  count: number,
): Promise<Readonly<Record<string, number>>> {
  const pids = { agent: system.agent.pid, coordinator: system.coordinator.pid };
  const before = { agent: residentMb(pids.agent), coordinator: residentMb(pids.coordinator) };
  for (const pid of Object.values(pids)) resetPeak(pid);
  const cpu = { agent: cpuSeconds(pids.agent), coordinator: cpuSeconds(pids.coordinator) };
  const ids = Array.from({ length: count }, (_, index) => `burst-${index}`);
  const failed = new Map<string, string>();
  /**
   * Waits for a phase. A workspace that fails reaches STOPPED without RUNNING; it is counted, but the wait doesn't
   * include it.
   */
  const reach = async (phase: WorkspacePhase): Promise<void> => {
    const rest = new Set(ids);
    const settle = async (): Promise<boolean> => {
      for (const { id, phase: at, conditions } of (await calls.list()).status) {
        if (at === phase || at === STOPPED) rest.delete(id);
        const reason = conditions?.failed || conditions?.timeout;
        if (reason) failed.set(id, reason);
      }
      return rest.size === 0;
    };
    await waitFor(settle, {
      ...{ what: `${count} workspaces are in phase ${phase}`, limitMs: LIMIT_MS, everyMs: EVERY_MS },
      explain: () => `missing: ${[...rest].join()}`,
    });
  };
  let accepted = 0;
  const starts = await secondsOf(async () => {
    accepted = await secondsOf(() => Promise.all(ids.map((id) => calls.start(id))));
    await reach(RUNNING);
  });
  const running = { agent: residentMb(pids.agent), coordinator: residentMb(pids.coordinator) };
  const stops = await secondsOf(async () => {
    await Promise.all(ids.map((id) => calls.stop(id)));
    await reach(STOPPED);
  });
  const unsaved = (await calls.list()).status.filter((it) => it.conditions?.finalBackupComplete !== 1);
  for (const [id, reason] of failed) console.error(`${id} failed: ${reason}`);
  return {
    "workspaces that start at once on one host": count,
    "until all starts are answered (s)": accepted,
    "until all are RUNNING (s)": starts,
    "until all are STOPPED, with their backups (s)": stops,
    "failed or timed out": failed.size,
    "stopped without a backup": unsaved.length,
    "agent, resident memory before (MB)": before.agent,
    "agent, resident memory with all RUNNING (MB)": running.agent,
    "agent, highest resident memory (MB)": peakMb(pids.agent),
    "coordinator, resident memory before (MB)": before.coordinator,
    "coordinator, resident memory with all RUNNING (MB)": running.coordinator,
    "coordinator, highest resident memory (MB)": peakMb(pids.coordinator),
    "agent, CPU (s)": cpuSeconds(pids.agent) - cpu.agent,
    "coordinator, CPU (s)": cpuSeconds(pids.coordinator) - cpu.coordinator,
  };
}
