/** Runs at most a fixed number of tasks at a time, in the order of the calls. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(limit: number) {
    this.#free = limit;
  }

  /** Runs `task` once there is a slot. Rejects with the signal's reason if that aborts during the wait. */
  async run<Result>(signal: AbortSignal, task: () => Promise<Result>): Promise<Result> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    try {
      return await task();
    } finally {
      this.#leave();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#waiting.delete(enter);
        reject(signal.reason);
      };
      this.#waiting.add(enter);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  // The next waiter gets the slot directly, so that none is overtaken.
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
