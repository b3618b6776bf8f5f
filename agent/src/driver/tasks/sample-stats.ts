import { linkSignals } from "@forage/common/link-signals";
import type { TaskStats } from "@forage/proto/plugins/drivers/proto/driver";
import { pause } from "../../clock.ts";
import type { Task } from "./task.ts";
import type { TaskDependencies } from "./task-dependencies.ts";
import { emptyReading, taskStats, type UsageReading } from "./task-stats.ts";

// Nomad requests one sample per second. Shorter intervals only cost CPU.
const INTERVAL_MIN_MS = 100;
const INTERVAL_DEFAULT_MS = 1_000;

/**
 * Yields a sample at once and at each interval until the task ends. The first sample covers the time since the task's
 * start.
 */
export async function* sampleStats(
  { runtime, clock }: Pick<TaskDependencies, "runtime" | "clock">,
  task: Task,
  intervalMs: number,
  signal: AbortSignal,
): AsyncGenerator<TaskStats, void, undefined> {
  const { id, containerId, startedAtMs, coreMhz } = task.state;
  const ageMs = Math.max(1, clock.nowMs() - startedAtMs);
  let before: UsageReading = emptyReading(clock.monotonicMs() - ageMs);
  const ended = new AbortController();
  const { signal: until, unlink } = linkSignals(signal, ended.signal, task.forgotten);
  void task.ended.then(() => ended.abort());
  try {
    while (task.exit === undefined && !until.aborted) {
      const usage = await runtime.detailedUsage(containerId);
      if (usage === undefined) return;
      const reading = { atMs: clock.monotonicMs(), usage };
      yield taskStats({ id, nowMs: clock.nowMs(), before, reading, coreMhz });
      before = reading;
      await pause(clock, intervalMs > 0 ? Math.max(INTERVAL_MIN_MS, intervalMs) : INTERVAL_DEFAULT_MS, until);
    }
  } finally {
    unlink();
  }
}
