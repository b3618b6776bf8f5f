/** The code of an error. Codes are stable, and `rpc/status.ts` maps each to one gRPC status. */
export type CoordinatorErrorCode =
  | "INVALID"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "CONFLICT"
  | "FAILED_PRECONDITION"
  | "UNAUTHENTICATED"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "OUT_OF_RANGE"
  | "UNAVAILABLE"
  | "ABORTED"
  | "DEADLINE_EXCEEDED"
  | "DATA_LOSS"
  | "UNIMPLEMENTED"
  | "INTERNAL";

/**
 * A violation of one field. `field` is a path such as
 * `resources[0].container_service.container.image`.
 */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export class CoordinatorError extends Error {
  readonly code: CoordinatorErrorCode;
  readonly violations: readonly FieldViolation[];

  constructor(
    code: CoordinatorErrorCode,
    message: string,
    options: { readonly violations?: readonly FieldViolation[]; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = "CoordinatorError";
    this.code = code;
    this.violations = options.violations ?? [];
  }

  /** Whether the same call may succeed later without any change by the caller. */
  get retryable(): boolean {
    return this.code === "UNAVAILABLE" || this.code === "CONFLICT" || this.code === "ABORTED";
  }
}
