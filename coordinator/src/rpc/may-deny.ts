import { CoordinatorError } from "../errors.ts";

/**
 * Returns the error for the caller. That something doesn't exist is UNAVAILABLE if this coordinator may be out of date: another one
 * may have acknowledged it.
 */
export function denied(error: unknown, mayDeny: (() => boolean) | undefined): unknown {
  const isDenial = error instanceof CoordinatorError && error.code === "NOT_FOUND";
  if (!isDenial || mayDeny === undefined || mayDeny()) return error;
  const reason = "this coordinator has not confirmed lately that it has all that was acknowledged: try again";
  return new CoordinatorError("UNAVAILABLE", `${error.message}; ${reason}`, { cause: error });
}
