/** The exit codes that scripts can rely on. `exec` also passes on the command's own code. */
export const EXIT = {
  ok: 0,
  failed: 1,
  /** `plan`: an apply would change something. `whatif`: pods would wait, or a service fall below its minimum. */
  changes: 1,
  notPlaced: 2,
  rolledBack: 3,
  timedOut: 4,
  /** `exec` could not run the command, or lost it. The code differs from the command's own codes, as with container tools. */
  execFailed: 125,
  /** `plan` and `whatif`: it could not be made. */
  planFailed: 255,
  interrupted: 130,
  /** The exit code that a process killed by SIGPIPE has. */
  outputClosed: 141,
} as const;

/** 0–255; not only ours, as `exec` hands on the command's. */
export type ExitCode = number;
