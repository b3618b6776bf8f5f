import type { Clock } from "../clock.ts";
import type { ChildRunner } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

/**
 * A measurement visits all files. Measuring takes at most a hundredth of the time, and small directories are measured
 * often, because nothing else keeps a pod from filling the disk.
 */
const SHARE = 100;
const INTERVAL_LEAST_MS = 10_000;
const INTERVAL_MOST_MS = 300_000;
const WALK_MS = 600_000;

export interface WatchedDirectory {
  readonly path: string;
  readonly limitBytes: number;
  readonly exceeded: (usedBytes: number) => void;
  /** Receives each measurement. */
  readonly measured?: (usedBytes: number) => void;
}

export interface DiskUseWatchOptions {
  readonly clock: Clock;
  /** Returns the size of the files below the path, in bytes. */
  readonly measure: (path: string, signal: AbortSignal) => Promise<number>;
  readonly onError: (path: string, error: unknown) => void;
}

/** Measures directories whose limit nothing else enforces, one after the other. Without directories no timer runs. */
export class DiskUseWatch {
  readonly #options: DiskUseWatchOptions;
  readonly #watched = new Map<string, { readonly directory: WatchedDirectory; dueMs: number }>();
  readonly #closing = new AbortController();
  #timer: (() => void) | undefined;
  #measuring: Promise<void> | undefined;

  constructor(options: DiskUseWatchOptions) {
    this.#options = options;
  }

  watch(directory: WatchedDirectory): void {
    if (this.#watched.has(directory.path)) return;
    this.#watched.set(directory.path, {
      directory,
      dueMs: this.#options.clock.monotonicMs() + INTERVAL_LEAST_MS,
    });
    this.#schedule();
  }

  /** Stops watching the path and everything below it. */
  unwatch(path: string): void {
    for (const watched of [...this.#watched.keys()]) {
      if (watched === path || watched.startsWith(`${path}/`)) this.#watched.delete(watched);
    }
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#timer?.();
    await this.#measuring;
  }

  #schedule(): void {
    this.#timer?.();
    this.#timer = undefined;
    if (this.#closing.signal.aborted || this.#measuring !== undefined || this.#watched.size === 0) return;
    const dueMs = Math.min(...[...this.#watched.values()].map((it) => it.dueMs));
    const { clock } = this.#options;
    this.#timer = clock.schedule(Math.max(0, dueMs - clock.monotonicMs()), () => {
      this.#measuring = this.#walkDue().finally(() => {
        this.#measuring = undefined;
        this.#schedule();
      });
    });
  }

  async #walkDue(): Promise<void> {
    const { clock, measure, onError } = this.#options;
    for (const [path, watched] of [...this.#watched]) {
      if (this.#closing.signal.aborted) return;
      const beganMs = clock.monotonicMs();
      if (watched.dueMs > beganMs || !this.#watched.has(path)) continue;
      try {
        const usedBytes = await measure(path, this.#closing.signal);
        const { limitBytes, exceeded, measured } = watched.directory;
        if (this.#watched.has(path)) measured?.(usedBytes);
        if (usedBytes > limitBytes && this.#watched.has(path)) exceeded(usedBytes);
      } catch (error) {
        if (!this.#closing.signal.aborted) onError(path, error);
      }
      const tookMs = clock.monotonicMs() - beganMs;
      watched.dueMs =
        clock.monotonicMs() + Math.min(INTERVAL_MOST_MS, Math.max(INTERVAL_LEAST_MS, SHARE * tookMs));
    }
  }
}

/** Returns the disk usage of the files below the path, in bytes. */
export async function measureUse(path: string, children: ChildRunner, signal: AbortSignal): Promise<number> {
  // `du` reports errors for files that vanish meanwhile, but continues and prints the sum.
  const { stdout } = await children.run("nice", ["-n", "10", "du", "-s", "-x", "-B1", "--", path], {
    signal,
    timeoutMs: WALK_MS,
  });
  const bytes = Number.parseInt(stdout, 10);
  if (Number.isNaN(bytes)) throw new VolumeError("HOST_FAILED", `du printed no size for ${path}`);
  return bytes;
}
