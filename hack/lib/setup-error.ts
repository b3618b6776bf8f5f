/** The codes of faults that prevent the setup of a machine. */
export type SetupErrorCode =
  | "COMMAND_FAILED"
  | "MISSING_TOOL"
  | "NOT_ROOT"
  | "NOT_READY"
  | "PORT_TAKEN"
  | "DOWNLOAD_FAILED"
  | "DISK_FULL"
  | "BAD_USAGE";

export class SetupError extends Error {
  readonly code: SetupErrorCode;
  /** One or more commands or sentences that describe the remedy. */
  readonly advice: string;

  constructor(code: SetupErrorCode, message: string, advice: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SetupError";
    this.code = code;
    this.advice = advice;
  }
}
