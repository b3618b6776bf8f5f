import { CoordinatorError } from "../../errors.ts";

export function notFound(object: string): CoordinatorError {
  return new CoordinatorError("NOT_FOUND", `the content store has no object ${object}`);
}

export function storeClosed(): CoordinatorError {
  return new CoordinatorError("UNAVAILABLE", "the content store is closed: the coordinator is stopping");
}

/** Throws OUT_OF_RANGE unless the offset lies within the object or at its end. */
export function assertOffset(object: string, offsetBytes: number, sizeBytes: number): void {
  if (Number.isSafeInteger(offsetBytes) && offsetBytes >= 0 && offsetBytes <= sizeBytes) return;
  throw new CoordinatorError(
    "OUT_OF_RANGE",
    `offset ${offsetBytes} is not within object ${object}, which has ${sizeBytes} bytes`,
  );
}

/** Throws the signal's reason if the signal is aborted. */
export function assertNotAborted(signal: AbortSignal): void {
  if (!signal.aborted) return;
  if (signal.reason instanceof CoordinatorError) throw signal.reason;
  throw new CoordinatorError("ABORTED", "the transfer was cancelled", { cause: signal.reason });
}
