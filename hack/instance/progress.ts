import { SetupError } from "../lib/setup-error.ts";

/** Prints the current step, and its duration, on standard error. */
export interface Progress {
  /** Runs one step. `report` shows the progress of a long step. */
  step<T>(title: string, work: (report: (detail: string) => void) => Promise<T>): Promise<T>;
  /** Prints a separate line. */
  say(text: string): void;
}

export function showProgress(write: (line: string) => void, color: boolean, nowMs: () => number): Progress {
  const paint = (code: number, text: string): string => (color ? `\x1b[${code}m${text}\x1b[0m` : text);
  return {
    async step(title, work) {
      const startMs = nowMs();
      try {
        const result = await work((detail) => write(`${paint(2, "…")} ${detail}`));
        write(`${paint(32, "✓")} ${title} ${paint(2, `(${((nowMs() - startMs) / 1000).toFixed(1)} s)`)}`);
        return result;
      } catch (error) {
        write(`${paint(31, "✗")} ${title}`);
        throw error;
      }
    },
    say: write,
  };
}

/** Returns the fault and its remedy in plain lines. */
export function describeFailure(error: unknown): string {
  const known = error instanceof SetupError ? error : fromSystem(error);
  if (!known) return error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `${known.message}\n  what to do: ${known.advice}`;
}

function fromSystem(error: unknown): SetupError | undefined {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ENOSPC":
      return new SetupError(
        "DISK_FULL",
        `the disk is full: ${message}`,
        "free some space, then run this again",
      );
    case "EROFS":
    case "EACCES":
    case "EPERM":
      return new SetupError("NOT_ROOT", message, "choose a --data directory that root can write to");
    default:
      return undefined;
  }
}
