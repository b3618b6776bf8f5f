/** The end of a task's container. */
export interface TaskExit {
  readonly exitCode: number;
  /** The signal that ended the container, or 0. */
  readonly signal: number;
  readonly oomKilled: boolean;
  readonly atMs: number;
  /** The reason why the exit code is unknown. Nomad then counts the task as failed. */
  readonly error?: string;
}

const SIGNAL_EXIT_BASE = 128;
// The highest signal of Linux.
const SIGNAL_MAX = 64;

/**
 * Returns the signal of an exit code. As in shells, a process that a signal ended has exit code 128 plus the signal.
 */
export function signalOf(exitCode: number): number {
  const signal = exitCode - SIGNAL_EXIT_BASE;
  return signal > 0 && signal <= SIGNAL_MAX ? signal : 0;
}
