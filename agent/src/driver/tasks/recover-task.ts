import { messageOf } from "@forage/common/message-of";
import type { TaskHandle } from "@forage/proto/plugins/drivers/proto/driver";
import { DriverError } from "../driver-error.ts";
import { isAlive } from "./processes.ts";
import type { TaskDependencies } from "./task-dependencies.ts";
import { decodeTaskState, type TaskState } from "./task-state.ts";

// Nomad's client starts no other task during this time.
const INSPECT_LIMIT_MS = 5_000;

export function stateOfHandle({ version, driverState }: TaskHandle): TaskState {
  return decodeTaskState(version, driverState);
}

/**
 * Resolves if the task runs, or if it has ended since the host's last boot and its exit code is known; otherwise
 * rejects within seconds. A running task is found by its process, without waiting for containerd.
 */
export async function checkRecoverable(
  { processes, runtime }: Pick<TaskDependencies, "processes" | "runtime">,
  { process, bootId, containerId }: TaskState,
): Promise<void> {
  if (bootId !== processes.bootId()) throw gone("the host was rebooted");
  if (process !== undefined && isAlive(processes, process)) return;
  const found = await runtime
    .inspect(containerId, AbortSignal.timeout(INSPECT_LIMIT_MS))
    .catch((error: unknown) => {
      throw gone(`its process ended and containerd does not report how: ${messageOf(error)}`);
    });
  if (found === undefined) throw gone("its container was removed");
  if (found.state !== "exited" || found.exitCode === undefined)
    throw gone(`its container is ${found.state} without a process`);
}

function gone(reason: string): DriverError {
  return new DriverError("FAILED_PRECONDITION", `the task no longer exists: ${reason}`);
}
