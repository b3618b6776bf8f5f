import { setTimeout as delay } from "node:timers/promises";
import { WorkspacePhase } from "@forage/proto/core";
import type { System } from "../../hack/system/system.ts";
import type { WorkspaceCalls } from "../../hack/system/workspaces.ts";
import { peakMb, resetPeak } from "../apply/process-cost.ts";
import { secondsOf } from "./rounds.ts";

const EVERY_MS = 500;

/** Returns what it takes when so many workspaces start, and then stop with their backups, at one moment on one real host. */
export async function measureBurst(
  system: System,
  calls: WorkspaceCalls,
  count: number,
): Promise<Readonly<Record<string, number>>> {
  const pids = { agent: system.agent.pid, coordinator: system.coordinator.pid };
  for (const pid of Object.values(pids)) resetPeak(pid);
  const ids = Array.from({ length: count }, (_, index) => `burst-${index}`);
  const reach = async (phase: WorkspacePhase): Promise<void> => {
    const rest = new Set(ids);
    while (rest.size > 0) {
      const { status } = await calls.list();
      for (const it of status) if (it.phase === phase) rest.delete(it.id);
      await delay(EVERY_MS);
    }
  };
  const starts = await secondsOf(async () => {
    await Promise.all(ids.map((id) => calls.start(id)));
    await reach(WorkspacePhase.RUNNING);
  });
  const stops = await secondsOf(async () => {
    await Promise.all(ids.map((id) => calls.stop(id)));
    await reach(WorkspacePhase.STOPPED);
  });
  return {
    "workspaces that start at once on one host": count,
    "until all are RUNNING (s)": starts,
    "until all are STOPPED, with their backups (s)": stops,
    "agent, highest resident memory (MB)": peakMb(pids.agent),
    "coordinator, highest resident memory (MB)": peakMb(pids.coordinator),
  };
}
