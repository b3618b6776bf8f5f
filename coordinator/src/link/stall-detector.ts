import type { Clock } from "../time/clock.ts";

export interface StallDetectorOptions {
  readonly clock: Clock;
  /** The interval at which the process checks whether it was blocked, in milliseconds. */
  readonly intervalMs: number;
  /** Called once for each pause with its length, before other reactions to it. */
  readonly onStall: (stalledMs: number) => void;
  /** Called at each interval, also after a pause. */
  readonly onPulse: () => void;
}

/**
 * The largest change of the wall clock that counts as a normal correction. A larger one may be caused by a suspended
 * machine.
 */
const WALL_JUMP_MS = 5_000;

/**
 * Detects that the process did not run for a while: stopped by a signal, without CPU time, or paused with its machine.
 * Messages of other hosts from that time are still unread, so missing heartbeats prove nothing. Timers that evaluate
 * missing heartbeats call `check` first, because all timers that become due during a pause run before anything is read, in
 * any order.
 */
export class StallDetector {
  readonly #options: StallDetectorOptions;
  #lastMs: number;
  #lastWallMs: number;
  #cancel: () => void = () => {};

  constructor(options: StallDetectorOptions) {
    this.#options = options;
    this.#lastMs = options.clock.monotonicMs();
    this.#lastWallMs = options.clock.nowMs();
    this.#pulseLater();
  }

  check(): void {
    const { clock, intervalMs, onStall } = this.#options;
    const elapsedMs = clock.monotonicMs() - this.#lastMs;
    // The monotonic clock doesn't advance while a machine is suspended, and the wall clock is corrected afterwards.
    const jumpMs = clock.nowMs() - this.#lastWallMs - elapsedMs;
    const lateMs = elapsedMs - intervalMs;
    const stalledMs = Math.max(lateMs > intervalMs / 2 ? lateMs : 0, jumpMs > WALL_JUMP_MS ? jumpMs : 0);
    if (stalledMs === 0) return;
    this.#note();
    onStall(stalledMs);
  }

  stop(): void {
    this.#cancel();
  }

  #note(): void {
    this.#lastMs = this.#options.clock.monotonicMs();
    this.#lastWallMs = this.#options.clock.nowMs();
  }

  #pulseLater(): void {
    this.#cancel = this.#options.clock.schedule(this.#options.intervalMs, () => {
      this.check();
      this.#note();
      this.#pulseLater();
      this.#options.onPulse();
    });
  }
}
