/** The error of a failed task of the setup program. Its message is for the operator. */
export class SetupError extends Error {
  readonly exitCode: 1 | 2;

  constructor(message: string, options: { readonly exitCode?: 1 | 2; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "SetupError";
    this.exitCode = options.exitCode ?? 1;
  }
}
