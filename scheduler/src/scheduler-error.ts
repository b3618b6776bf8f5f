export type SchedulerErrorCode =
  | "invalid_quantity"
  | "quantity_out_of_range"
  | "invalid_pod"
  | "invalid_node"
  | "invalid_scenario"
  | "unknown_node"
  | "unknown_pod"
  | "already_bound";

/** The only error class of the package. `field` is the path of the invalid field, if any. */
export class SchedulerError extends Error {
  readonly code: SchedulerErrorCode;
  readonly field: string | undefined;

  constructor(code: SchedulerErrorCode, message: string, field?: string) {
    super(message);
    this.name = "SchedulerError";
    this.code = code;
    this.field = field;
  }
}
