import { S3ServiceException } from "@aws-sdk/client-s3";
import { CoordinatorError } from "../../../errors.ts";

const FULL = ["QuotaExceeded", "XMinioStorageFull", "EntityTooLarge", "InsufficientStorage"];

/**
 * Converts an error: a CoordinatorError is returned unchanged, a full store becomes
 * RESOURCE_EXHAUSTED, and any other error of the server or network becomes UNAVAILABLE.
 */
export function fromS3Error(cause: unknown, what: string): unknown {
  if (cause instanceof CoordinatorError) return cause;
  if (cause instanceof S3ServiceException) {
    const status = cause.$metadata.httpStatusCode;
    const full = FULL.includes(cause.name) || status === 507;
    // The response to a HEAD request has no body, so the error has no message and is named by its
    // status.
    return new CoordinatorError(
      full ? "RESOURCE_EXHAUSTED" : "UNAVAILABLE",
      `${what}: the S3 server answered ${status ?? "nothing"} ${cause.name}`,
      { cause },
    );
  }
  if (cause instanceof Error && isNetworkError(cause))
    return new CoordinatorError("UNAVAILABLE", `${what}: ${cause.name}: ${cause.message}`, { cause });
  return cause;
}

function isNetworkError(error: Error): boolean {
  return (
    "code" in error || error.name === "TimeoutError" || error.name === "AbortError" || "$metadata" in error
  );
}
