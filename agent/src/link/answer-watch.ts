import type { Clock } from "../clock.ts";

/** The number of heartbeats of which one requests an answer. */
const HEARTBEATS_PER_REQUEST = 3;
const REQUEST_LEAST_MS = 5_000;
/** The wait for an answer, in checks. A paused process runs a late check once, so its pause doesn't count as the coordinator's. */
const CHECK_MS = 1_000;
const CHECKS = 10;

export interface AnswerWatchOptions {
  readonly clock: Clock;
  /** Returns whether a message is being processed. The next ones are not read meanwhile. */
  readonly isBusy: () => boolean;
  /** Called once if the coordinator has sent nothing within 10 s of a request. */
  readonly onSilence: () => void;
}

/** Detects by requested answers to heartbeats that the coordinator can't be reached. Any message counts as an answer. */
export class AnswerWatch {
  readonly #options: AnswerWatchOptions;
  /** The monotonic time of the next request. */
  #nextMs = Number.NEGATIVE_INFINITY;
  #checksLeft = 0;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(options: AnswerWatchOptions) {
    this.#options = options;
  }

  /**
   * Returns whether the heartbeat that is about to be sent requests an answer, and starts the wait for it.
   * `intervalMs`: the interval between heartbeats.
   */
  request(intervalMs: number): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#closed || this.#cancel !== undefined || nowMs < this.#nextMs) return false;
    this.#nextMs = nowMs + Math.max(REQUEST_LEAST_MS, (HEARTBEATS_PER_REQUEST - 0.5) * intervalMs);
    this.#checksLeft = CHECKS;
    this.#checkLater();
    return true;
  }

  received(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** Ends the wait. No later heartbeat requests an answer, because the connection has ended. */
  close(): void {
    this.#closed = true;
    this.received();
  }

  #checkLater(): void {
    this.#cancel = this.#options.clock.schedule(CHECK_MS, () => this.#check());
  }

  #check(): void {
    const { isBusy, onSilence } = this.#options;
    this.#checksLeft = isBusy() ? CHECKS : this.#checksLeft - 1;
    if (this.#checksLeft > 0) {
      this.#checkLater();
      return;
    }
    this.#cancel = undefined;
    onSilence();
  }
}
