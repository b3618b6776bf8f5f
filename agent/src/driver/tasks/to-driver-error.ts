import { messageOf } from "@forage/common/message-of";
import { NetworkError } from "../../network/network.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { DriverError, type DriverErrorCode } from "../driver-error.ts";

/**
 * Returns the driver's error for anything thrown while a task starts. If the cause is retryable, Nomad starts the task
 * again.
 */
export function toStartError(error: unknown): DriverError {
  const known = toDriverError(error);
  if (known.recoverable !== undefined || !isRetryable(error)) return known;
  return new DriverError(known.code, known.message, { recoverable: true, cause: error });
}

/**
 * Returns the driver's error for anything that the runtime or the network threw. Other errors are returned unchanged,
 * for the log.
 */
export function toDriverError(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  if (error instanceof RuntimeError || error instanceof NetworkError)
    return new DriverError(codeOf(error), error.message, { cause: error });
  const message = messageOf(error);
  return new DriverError("INTERNAL", message, { cause: error });
}

function codeOf({ code }: RuntimeError | NetworkError): DriverErrorCode {
  if (code === "ABORTED") return "CANCELLED";
  if (code === "IMAGE_INVALID" || code === "START_FAILED") return "INVALID";
  return code === "UNKNOWN" ? "INTERNAL" : "FAILED_PRECONDITION";
}

function isRetryable(error: unknown): boolean {
  return (error instanceof RuntimeError || error instanceof NetworkError) && error.retryable;
}
