import { linkSignals } from "@forage/common/link-signals";
import { pause } from "../../clock.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { DriverError } from "../driver-error.ts";
import type { StopOptions } from "../driver-service.ts";
import { signalName } from "./signal-name.ts";
import type { Task } from "./task.ts";
import type { TaskDependencies } from "./task-dependencies.ts";

// If a process survives SIGKILL for longer, it is stuck in the kernel or containerd does not respond.
const KILL_WAIT_MS = 30_000;

/** Sends the signal, then SIGKILL after the time limit. Resolves once the task has ended. */
export async function stopTask(
  { runtime, clock }: Pick<TaskDependencies, "runtime" | "clock">,
  task: Task,
  { signalName: desired, timeoutMs }: StopOptions,
  closing: AbortSignal,
): Promise<void> {
  const { containerId } = task.state;
  // The runtime determines the image's own stop signal.
  if (desired === undefined) await runtime.stop(containerId, timeoutMs, closing);
  else {
    await runtime.kill(containerId, signalName(desired), closing).catch(unlessNotRunning);
    await endedWithin(timeoutMs);
    if (task.exit === undefined) await runtime.kill(containerId, "SIGKILL", closing).catch(unlessNotRunning);
  }
  await endedWithin(KILL_WAIT_MS);
  if (task.exit === undefined && !closing.aborted)
    throw new DriverError("INTERNAL", `the task still runs ${KILL_WAIT_MS / 1_000} s after SIGKILL`);

  async function endedWithin(limitMs: number): Promise<void> {
    if (task.exit !== undefined) return;
    const waiting = new AbortController();
    const { signal, unlink } = linkSignals(waiting.signal, closing);
    await Promise.race([task.ended, pause(clock, limitMs, signal)]);
    waiting.abort();
    unlink();
  }
}

function unlessNotRunning(error: unknown): void {
  if (!(error instanceof RuntimeError) || error.code !== "NOT_FOUND") throw error;
}
