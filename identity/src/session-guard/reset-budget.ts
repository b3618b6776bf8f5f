/**
 * Limits the streams that a peer opens and resets at once. Each costs the server as much as an answered call (0.1 ms of CPU) and
 * the peer almost nothing. A token bucket; times are monotonic.
 */
export class ResetBudget {
  readonly #burst: number;
  #left: number;
  #filledMs: number;

  constructor(burst: number, nowMs: number) {
    this.#burst = burst;
    this.#left = burst;
    this.#filledMs = nowMs;
  }

  /** Counts one stream; false when the budget is used up. */
  spend(nowMs: number): boolean {
    const refill = ((nowMs - this.#filledMs) / 1000) * RESETS_PER_SECOND;
    this.#left = Math.min(this.#burst, this.#left + refill) - 1;
    this.#filledMs = nowMs;
    return this.#left >= 0;
  }
}

/** The rate that nghttp2 takes for normal: a client that cancels more than this for long is broken or hostile. */
const RESETS_PER_SECOND = 33;
/** A proxy that drops all its short look-ups together; 30 ms of CPU. */
export const RESET_BURST = 256;
/**
 * For a connection with accepted credentials: nodes and gateways relay streams that their own clients cancel. It is below the
 * 1,000 at which nghttp2 closes a connection by itself, so that the peer learns why.
 */
export const PROVEN_RESET_BURST = 900;
/** For a connection of an address that was cut before. */
export const PACED_RESET_BURST = 32;
/** A stream that lived longer is a normal one that the client cancels: proxies hold theirs for minutes. */
export const QUICK_RESET_MS = 250;
