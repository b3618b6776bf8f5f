import { createHash } from "node:crypto";
import { DriverError } from "../driver-error.ts";

export interface TaskId {
  readonly allocId: string;
  readonly taskName: string;
  /** An id that differs for every start of the same task. */
  readonly invocation: string;
}

const ID_MAX_LENGTH = 1_000;
const NAME_PART_MAX_LENGTH = 60;

/** Splits `<alloc>/<task>/<invocation>`. Rejects with INVALID an id of another form. */
export function parseTaskId(id: string): TaskId {
  const match = /^([A-Za-z0-9_-]{1,64})\/([^\0\n]{1,900})\/([0-9a-f]{8})$/.exec(id);
  const [, allocId, taskName, invocation] = match ?? [];
  if (
    allocId === undefined ||
    taskName === undefined ||
    invocation === undefined ||
    id.length > ID_MAX_LENGTH
  )
    throw new DriverError(
      "INVALID",
      `task id ${JSON.stringify(id.slice(0, ID_MAX_LENGTH))}: must be ALLOCATION/TASK/8 HEX DIGITS`,
    );
  return { allocId, taskName, invocation };
}

/**
 * Returns the container's name, which is unique for every start: `<instance>-<task>-<allocation>-<invocation>-<hash of
 * the id>`. The hash distinguishes tasks whose names differ only in characters that a container name cannot contain.
 */
export function containerNameOf(instance: string, id: string): string {
  const { allocId, taskName, invocation } = parseTaskId(id);
  const readable = taskName.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, NAME_PART_MAX_LENGTH);
  return `${instance}-${readable}-${allocId}-${invocation}-${shortHash(id)}`;
}

/** Returns eight hexadecimal digits of the text's hash. */
export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
