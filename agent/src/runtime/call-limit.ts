import { RuntimeError } from "./runtime.ts";

/** Runs at most `size` calls at one time. Further calls wait in order of arrival. */
export class CallLimit {
  readonly #size: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(size: number) {
    this.#size = size;
  }

  async run<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const release = await this.enter(signal);
    try {
      return await call();
    } finally {
      release();
    }
  }

  /** Waits for a slot and returns the function that releases it. */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw aborted();
    if (this.#running >= this.#size) await this.#wait(signal);
    else this.#running += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#leave();
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    if (this.#waiting.length >= WAITING_MAX) {
      throw new RuntimeError("UNKNOWN", "too many calls wait for the container runtime", { retryable: true });
    }
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(begin), 1);
        reject(aborted());
      };
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.push(begin);
    });
  }

  // The next waiting call gets the slot directly, so that no new call can overtake it.
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }
}

// Many times the containers of a host. A longer queue means that a caller has a defect.
const WAITING_MAX = 10_000;

function aborted(): RuntimeError {
  return new RuntimeError("ABORTED", "cancelled while it waited for its turn", { retryable: true });
}
