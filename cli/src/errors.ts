import { EXIT, type ExitCode } from "./exit-code.ts";

/**
 * The reasons why a command failed. They are stable: tests and `docs/reference/cli.md` use them.
 */
export type CliErrorCode =
  /** The command line, a configuration file or a manifest is invalid; nothing was sent. */
  | "USAGE"
  | "CONFIG"
  | "MANIFEST"
  /**
   * The coordinator can't be reached, or its certificate is not from the authority in the CA file.
   */
  | "UNREACHABLE"
  | "UNTRUSTED"
  /** The coordinator refused the call. */
  | "UNAUTHENTICATED"
  | "DENIED"
  | "NOT_FOUND"
  | "AMBIGUOUS"
  | "REFUSED"
  /** The entries of the audit log do not form a chain, or an entry is missing. */
  | "AUDIT_BROKEN"
  | "TIMED_OUT"
  | "INTERRUPTED"
  /** The reader of the output has closed it. */
  | "OUTPUT_CLOSED"
  /** The output could not be written, for example because the disk is full. */
  | "OUTPUT_LOST";

const EXIT_CODES: Readonly<Partial<Record<CliErrorCode, ExitCode>>> = {
  TIMED_OUT: EXIT.timedOut,
  INTERRUPTED: EXIT.interrupted,
  OUTPUT_CLOSED: EXIT.outputClosed,
};

/**
 * An error whose message is shown to the user: it states what went wrong and what to do, and
 * contains no secrets.
 */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly code: CliErrorCode;
  readonly exitCode: ExitCode;

  constructor(
    code: CliErrorCode,
    message: string,
    { exitCode, ...options }: { readonly cause?: unknown; readonly exitCode?: ExitCode } = {},
  ) {
    super(message, options);
    this.code = code;
    this.exitCode = exitCode ?? EXIT_CODES[code] ?? EXIT.failed;
  }
}
