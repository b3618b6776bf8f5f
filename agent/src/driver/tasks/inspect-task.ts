import {
  type ExitResult,
  type InspectTaskResponse,
  type NetworkOverride,
  TaskState as NomadTaskState,
  type WaitTaskResponse,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { TaskExit } from "./exit.ts";
import type { TaskState } from "./task-state.ts";
import { toTimestamp } from "./timestamp.ts";

/**
 * Returns the inspection with every message set, because Nomad's agent crashes on a missing task, result or timestamp.
 */
export function inspectTask(state: TaskState, exit: TaskExit | undefined): InspectTaskResponse {
  const { id, name, startedAtMs, containerId, containerName } = state;
  return {
    task: {
      ...{ id, name },
      state: exit === undefined ? NomadTaskState.RUNNING : NomadTaskState.EXITED,
      startedAt: toTimestamp(startedAtMs),
      completedAt: toTimestamp(exit?.atMs),
      result: exitResult(exit),
    },
    driver: {
      attributes: {
        container_id: containerId,
        container_name: containerName,
        ...(state.process && { pid: String(state.process.pid) }),
        ...(state.sandbox && { ip: state.sandbox.address }),
      },
    },
    networkOverride: networkOverride(state),
  };
}

export function waitResponse(exit: TaskExit): WaitTaskResponse {
  return { result: exitResult(exit), err: exit.error ?? "" };
}

/** Returns the network of a task. Undefined if the task has no network of its own. */
export function networkOverride({ sandbox, portMap }: TaskState): NetworkOverride | undefined {
  return sandbox && { addr: sandbox.address, autoAdvertise: true, portMap: { ...portMap } };
}

function exitResult(exit: TaskExit | undefined): ExitResult {
  const { exitCode, signal, oomKilled } = exit ?? { exitCode: 0, signal: 0, oomKilled: false };
  return { exitCode, signal, oomKilled };
}
