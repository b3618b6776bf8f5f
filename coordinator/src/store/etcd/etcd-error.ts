import { messageOf } from "@forage/common/message-of";
import { status } from "@grpc/grpc-js";

export type EtcdErrorCode =
  /** No member responded in time, or the member has no leader. The call may have taken effect. */
  | "UNAVAILABLE"
  /** The database has reached its quota. The call had no effect. */
  | "NO_SPACE"
  /** etcd rejects the credentials, or they don't permit the call. */
  | "DENIED"
  /** The revision was compacted. */
  | "COMPACTED"
  /** etcd rejects the request permanently. */
  | "REJECTED";

/** A failed call of etcd. */
export class EtcdError extends Error {
  override readonly name = "EtcdError";
  readonly code: EtcdErrorCode;

  constructor(code: EtcdErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return this.code === "UNAVAILABLE" || this.code === "NO_SPACE" || this.code === "DENIED";
  }

  static from(error: unknown, endpoint: string): EtcdError {
    if (error instanceof EtcdError) return error;
    const code = isObject(error) && typeof error.code === "number" ? error.code : status.UNKNOWN;
    const details = isObject(error) && typeof error.details === "string" ? error.details : messageOf(error);
    return new EtcdError(codeOf(code, details), `${endpoint}: ${details}`, { cause: error });
  }
}

function codeOf(code: number, details: string): EtcdErrorCode {
  switch (code) {
    case status.RESOURCE_EXHAUSTED:
      // "too many requests" has the same code, but is a temporary condition.
      return details.includes("space exceeded") ? "NO_SPACE" : "UNAVAILABLE";
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
      return "DENIED";
    case status.OUT_OF_RANGE:
      return "COMPACTED";
    case status.INVALID_ARGUMENT:
    case status.FAILED_PRECONDITION:
    case status.NOT_FOUND:
    case status.UNIMPLEMENTED:
      return "REJECTED";
    default:
      return "UNAVAILABLE";
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
