/**
 * The exit codes on which scripts can rely. `exec` also returns the exit code of the executed
 * command.
 */
export const EXIT = {
  ok: 0,
  failed: 1,
  /**
   * `plan`: an apply would change something. `whatif`: pods would wait, or a service would fall
   * below its minimum.
   */
  changes: 1,
  notPlaced: 2,
  rolledBack: 3,
  timedOut: 4,
  /**
   * `exec` could not run the command, or lost the connection to it. The code differs from those of
   * most commands, as with container tools.
   */
  execFailed: 125,
  /** `plan` and `whatif` failed. */
  planFailed: 255,
  interrupted: 130,
  /** The exit code of a process killed by SIGPIPE. */
  outputClosed: 141,
} as const;

/** An exit code from 0 to 255. It may be that of a command run by `exec`. */
export type ExitCode = number;
