import { isIP } from "node:net";
import type { PodSandbox } from "../../network/network.ts";
import { DriverError } from "../driver-error.ts";
import type { ProcessIdentity } from "./processes.ts";

/** The version of the format in {@link encodeTaskState}. Nomad reserves 0. */
export const TASK_STATE_VERSION = 1;

/** The state by which a plugin adopts a task that an earlier plugin started. Nomad stores it in the task's handle. */
export interface TaskState {
  readonly id: string;
  readonly name: string;
  readonly allocId: string;
  readonly containerId: string;
  readonly containerName: string;
  readonly image: string;
  readonly startedAtMs: number;
  /** The container's first process. Undefined if it ended before it was identified. */
  readonly process?: ProcessIdentity;
  /** The boot id of the host at the task's start. */
  readonly bootId: string;
  /** MHz of one core, to convert CPU usage to Nomad's ticks. */
  readonly coreMhz: number;
  /** The network that the driver has created for this task only. */
  readonly sandbox?: PodSandbox;
  /** The task's ports by label, if the driver publishes them. */
  readonly portMap?: Readonly<Record<string, number>>;
}

export function encodeTaskState(state: TaskState): Buffer {
  return Buffer.from(JSON.stringify(state));
}

/** Decodes the state of a handle. Throws FAILED_PRECONDITION, on which Nomad starts the task again. */
export function decodeTaskState(version: number, bytes: Uint8Array): TaskState {
  if (version !== TASK_STATE_VERSION) throw unreadable(`version ${version} is not ${TASK_STATE_VERSION}`);
  try {
    const state: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    if (isTaskState(state)) return state;
  } catch {
    // The error is reported below.
  }
  throw unreadable("it is not the state of a task");
}

function unreadable(reason: string): DriverError {
  return new DriverError("FAILED_PRECONDITION", `the task's handle cannot be read: ${reason}`);
}

function isTaskState(value: unknown): value is TaskState {
  if (!isObject(value)) return false;
  const { id, name, allocId, containerId, containerName, image, startedAtMs, bootId, coreMhz } = value;
  const texts = [id, name, allocId, containerId, containerName, image, bootId];
  return (
    texts.every((it) => typeof it === "string") &&
    typeof startedAtMs === "number" &&
    typeof coreMhz === "number" &&
    (value.process === undefined || isProcess(value.process)) &&
    (value.sandbox === undefined || isSandbox(value.sandbox))
  );
}

function isProcess(value: unknown): boolean {
  if (!isObject(value)) return false;
  return (
    Number.isSafeInteger(value.pid) &&
    Number.isSafeInteger(value.startTicks) &&
    typeof value.bootId === "string"
  );
}

function isSandbox(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { podUid, namespacePath, address } = value;
  return typeof podUid === "string" && typeof namespacePath === "string" && isIP(String(address)) !== 0;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
