import { CoordinatorError } from "../errors.ts";

/**
 * Converts an error for the caller. NOT_FOUND becomes UNAVAILABLE if this coordinator may be out of
 * date, because another coordinator may have acknowledged the object.
 */
export function denied(error: unknown, mayDeny: (() => boolean) | undefined): unknown {
  const isDenial = error instanceof CoordinatorError && error.code === "NOT_FOUND";
  if (!isDenial || mayDeny === undefined || mayDeny()) return error;
  const reason = "this coordinator may lack recently acknowledged changes: try again";
  return new CoordinatorError("UNAVAILABLE", `${error.message}; ${reason}`, { cause: error });
}
