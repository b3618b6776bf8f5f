/** An error that the coordinator returned, or that prevented an answer. */
export class ApiError extends Error {
  /** A gRPC status code, such as "PERMISSION_DENIED". "UNAVAILABLE" also if there was no answer. */
  readonly code: string;
  readonly violations: readonly { readonly field: string; readonly description: string }[];

  constructor(code: string, message: string, violations: ApiError["violations"] = []) {
    super(message);
    this.code = code;
    this.violations = violations;
  }
}
