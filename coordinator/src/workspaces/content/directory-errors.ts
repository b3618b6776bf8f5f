import { CoordinatorError } from "../../errors.ts";

/** Returns the system's code of an error, such as ENOENT. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/**
 * Converts an error: a CoordinatorError is returned unchanged, a full disk becomes
 * RESOURCE_EXHAUSTED, and any other error of the system becomes UNAVAILABLE.
 */
export function fromSystemError(cause: unknown, what: string): unknown {
  const code = codeOf(cause);
  if (cause instanceof CoordinatorError || code === undefined) return cause;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CoordinatorError("RESOURCE_EXHAUSTED", `${what}: the disk of the content store is full`, {
      cause,
    });
  return new CoordinatorError("UNAVAILABLE", `${what}: ${code}`, { cause });
}
