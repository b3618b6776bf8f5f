import { CoordinatorError } from "../../errors.ts";

/** Returns the system's code of an error, such as ENOENT. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Returns our own errors unchanged, a full disk as RESOURCE_EXHAUSTED, and other errors of the system as UNAVAILABLE. */
export function fromSystemError(cause: unknown, what: string): unknown {
  const code = codeOf(cause);
  if (cause instanceof CoordinatorError || code === undefined) return cause;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CoordinatorError("RESOURCE_EXHAUSTED", `${what}: the disk of the content store is full`, {
      cause,
    });
  return new CoordinatorError("UNAVAILABLE", `${what}: ${code}`, { cause });
}
