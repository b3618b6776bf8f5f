/** The end of a task's container. */
export interface TaskExit {
  readonly exitCode: number;
  /** The signal that ended it; 0: none did. */
  readonly signal: number;
  readonly oomKilled: boolean;
  readonly atMs: number;
  /** The reason why the exit code is unknown. Nomad then counts the task as failed. */
  readonly error?: string;
}

const SIGNAL_EXIT_BASE = 128;
// The highest signal of Linux.
const SIGNAL_MAX = 64;

/** containerd reports a process that a signal ended as 128 plus the signal, as shells do. */
export function signalOf(exitCode: number): number {
  const signal = exitCode - SIGNAL_EXIT_BASE;
  return signal > 0 && signal <= SIGNAL_MAX ? signal : 0;
}
