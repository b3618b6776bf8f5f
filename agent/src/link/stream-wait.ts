import { type Clock, pause } from "../clock.ts";

/**
 * Waits alongside a stream that may last for months. Racing its promise, or combining signals that live as long, would
 * leak memory with each wait.
 */
export class StreamWait {
  readonly #ended: Promise<void>;
  #isOver = false;
  #wake: () => void = () => {};

  /** `ended` settles with the stream. */
  constructor(ended: Promise<void>) {
    this.#ended = ended;
    const end = (): void => {
      this.#isOver = true;
      this.#wake();
    };
    ended.then(end, end);
  }

  /** Resolves after the time, or once a signal aborts or the stream ends. Rejects if the stream ended with an error. */
  async pause(clock: Clock, delayMs: number, signals: readonly AbortSignal[]): Promise<void> {
    const waiting = new AbortController();
    const wake = (): void => waiting.abort();
    this.#wake = wake;
    for (const signal of signals) signal.addEventListener("abort", wake, { once: true });
    if (this.#isOver || signals.some(({ aborted }) => aborted)) wake();
    await pause(clock, delayMs, waiting.signal);
    for (const signal of signals) signal.removeEventListener("abort", wake);
    if (this.#isOver) await this.#ended;
  }
}
