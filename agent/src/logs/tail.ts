import type { Clock } from "../clock.ts";
import { findLastLines } from "./last-lines.ts";
import type { LogChunk, LogFile } from "./log-file.ts";
import { watchFile } from "./watch-file.ts";

export interface TailOptions {
  /** Begins with the last `lines` lines. Undefined: with the oldest existing line. */
  readonly lines?: number;
  /** Begins at this position or later. */
  readonly from?: number;
  /** Called before each read. Returns the position up to which it may read. */
  readonly upTo?: () => Promise<number>;
  /** Yields an empty piece whenever there is nothing new, before it waits. */
  readonly notifyIdle?: boolean;
  /** Whether to continue with later output, until `signal` or `ended` aborts. */
  readonly follow: boolean;
  /** Stops at once, without an error. */
  readonly signal: AbortSignal;
  /** Aborts when the writer has ended: existing output is still read, then the tail ends. */
  readonly ended?: AbortSignal;
}

const PIECE_BYTES = 64 * 1024;
const LINE_BREAK = 0x0a;
// The file system reports each write. The interval is for file systems that don't (NFS), and for a file that doesn't
// exist yet.
const RECHECK_MS = 2_000;

/**
 * Yields the log's bytes in pieces that may end anywhere. Follows the log across rotations. A reader that is slower
 * than the writer loses what is rotated away.
 */
export async function* tailLog(
  file: LogFile,
  clock: Clock,
  options: TailOptions,
): AsyncGenerator<LogChunk, void, undefined> {
  const { lines, from = Number.NEGATIVE_INFINITY, upTo, notifyIdle = false, follow, signal, ended } = options;
  const alarm = new Alarm(clock, [signal, ...(ended ? [ended] : [])]);
  const watching = follow ? watchFile(file.path, () => alarm.ring()) : undefined;
  try {
    const first = lines === undefined ? (await file.bounds()).begin : await findLastLines(file, lines);
    let position = Math.max(from, first);
    while (!signal.aborted) {
      // Checked before the read, so that the writer's last output is read too.
      const last = !follow || ended?.aborted === true;
      const room = upTo === undefined ? PIECE_BYTES : Math.max(0, (await upTo()) - position);
      const piece = await file.read(position, Math.min(PIECE_BYTES, room));
      position = piece.position + piece.data.length;
      if (piece.data.length > 0) yield piece;
      else if (last) return;
      else {
        if (notifyIdle) yield piece;
        await alarm.wait(RECHECK_MS);
      }
    }
  } finally {
    watching?.();
    alarm.close();
  }
}

/** Returns the first beginning of a line at or after `position`, or the log's end if there is none. */
export async function findLine(file: LogFile, position: number): Promise<number> {
  const { begin, end } = await file.bounds();
  if (position <= begin) return begin;
  // The previous byte shows whether a line begins exactly here.
  for (let at = position - 1; at < end; ) {
    const piece = await file.read(at, PIECE_BYTES);
    const lineBreak = piece.data.indexOf(LINE_BREAK);
    if (lineBreak >= 0) return piece.position + lineBreak + 1;
    if (piece.data.length === 0) break;
    at = piece.position + piece.data.length;
  }
  return end;
}

/** Wakes one waiter. A call without a waiter wakes the next one at once. */
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
        const cancel = this.#clock.schedule(atMostMs, wake);
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
