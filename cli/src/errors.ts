import { EXIT, type ExitCode } from "./exit-code.ts";

/** Ways a command ends without having done its work. Stable: tests and `docs/reference/cli.md` name them. */
export type CliErrorCode =
  /** The command line, a configuration file or a manifest is wrong; nothing was sent. */
  | "USAGE"
  | "CONFIG"
  | "MANIFEST"
  /** The coordinator can't be reached, or isn't the one that the CA file vouches for. */
  | "UNREACHABLE"
  | "UNTRUSTED"
  /** The coordinator refused the call. */
  | "UNAUTHENTICATED"
  | "DENIED"
  | "NOT_FOUND"
  | "AMBIGUOUS"
  | "REFUSED"
  /** The audit log's entries form no chain, or an entry is missing. */
  | "AUDIT_BROKEN"
  | "TIMED_OUT"
  | "INTERRUPTED"
  /** The reader of the output has gone. */
  | "OUTPUT_CLOSED"
  /** The disk is full, or the like. */
  | "OUTPUT_LOST";

const EXIT_CODES: Readonly<Partial<Record<CliErrorCode, ExitCode>>> = {
  TIMED_OUT: EXIT.timedOut,
  INTERRUPTED: EXIT.interrupted,
  OUTPUT_CLOSED: EXIT.outputClosed,
};

/** An error whose message is shown to the user: what went wrong and what to do, without any secret. */
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
