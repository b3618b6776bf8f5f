/** The reason for the failure of a driver's call. */
export type DriverErrorCode =
  /** The driver does not know the task's id. */
  | "TASK_NOT_FOUND"
  /** The request or the task's configuration is wrong. */
  | "INVALID"
  /** The task's id is in use. */
  | "ALREADY_EXISTS"
  /** The task or the host is not in a state that allows the call. */
  | "FAILED_PRECONDITION"
  /** The driver does not offer the requested function. */
  | "UNIMPLEMENTED"
  /** The caller cancelled the call, or the driver is stopping. */
  | "CANCELLED"
  | "INTERNAL";

/** The only error class of the driver. `to-status.ts` maps it to a gRPC status. */
export class DriverError extends Error {
  readonly code: DriverErrorCode;
  /**
   * Whether Nomad should retry: false fails the task (or ends the statistics) for good. Undefined leaves the decision
   * to Nomad, which treats the error as final if it starts a task.
   */
  readonly recoverable: boolean | undefined;

  constructor(
    code: DriverErrorCode,
    message: string,
    options: { readonly recoverable?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = "DriverError";
    this.code = code;
    this.recoverable = options.recoverable;
  }
}

/** Nomad's clients compare errors with this text. */
export const TASK_NOT_FOUND = "task not found for given id";

export function taskNotFound(): DriverError {
  return new DriverError("TASK_NOT_FOUND", TASK_NOT_FOUND);
}
