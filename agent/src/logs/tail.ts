import { watch } from "node:fs";
import type { Clock } from "../clock.ts";
import { findLastLines } from "./last-lines.ts";
import type { LogFile } from "./log-file.ts";

export interface TailOptions {
  /** Begin with the last so many lines; undefined: with the oldest there is. */
  readonly lines?: number;
  /** Go on with what is written later, until `signal` or `ended`. */
  readonly follow: boolean;
  /** Stops at once, quietly. */
  readonly signal: AbortSignal;
  /** The writer has ended: what is there is still read, then it is over. */
  readonly ended?: AbortSignal;
}

const PIECE_BYTES = 64 * 1024;
// The file system tells of each write; this is for those that don't (NFS, a file not yet there).
const LOOK_AGAIN_MS = 2_000;

/** The log's bytes as they are; pieces end anywhere. Follows across rotations. Slower readers than writers lose what is rotated away. */
export async function* tailLog(
  file: LogFile,
  clock: Clock,
  options: TailOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { lines, follow, signal, ended } = options;
  const alarm = new Alarm(clock, [signal, ...(ended ? [ended] : [])]);
  const watching = follow ? watchFile(file.path, () => alarm.ring()) : undefined;
  try {
    let position = lines === undefined ? (await file.bounds()).begin : await findLastLines(file, lines);
    while (!signal.aborted) {
      // Seen before the read: what the writer wrote last is then read too.
      const last = !follow || ended?.aborted === true;
      const piece = await file.read(position, PIECE_BYTES);
      position = piece.position + piece.data.length;
      if (piece.data.length > 0) yield piece.data;
      else if (last) return;
      else await alarm.wait(LOOK_AGAIN_MS);
    }
  } finally {
    watching?.();
    alarm.close();
  }
}

/** Undefined if it can't be watched. The returned function ends it. */
function watchFile(path: string, changed: () => void): (() => void) | undefined {
  try {
    const watcher = watch(path, { persistent: false }, changed);
    watcher.on("error", () => watcher.close());
    return () => watcher.close();
  } catch {
    return undefined;
  }
}

/** Wakes one sleeper. Rung while nobody sleeps, it wakes the next one at once. */
class Alarm {
  readonly #clock: Clock;
  readonly #signals: readonly AbortSignal[];
  readonly #ring = () => this.ring();
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock, signals: readonly AbortSignal[]) {
    this.#clock = clock;
    this.#signals = signals;
    for (const signal of signals) signal.addEventListener("abort", this.#ring, { once: true });
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  async wait(atMostMs: number): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((wake) => {
        const cancel = this.#clock.after(atMostMs, wake);
        this.#wake = () => {
          cancel();
          wake();
        };
      });
    }
    this.#rung = false;
    this.#wake = undefined;
  }

  close(): void {
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#ring);
  }
}
