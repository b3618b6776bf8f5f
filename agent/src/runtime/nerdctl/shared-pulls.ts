import { RuntimeError } from "../runtime.ts";

interface Pull {
  readonly ended: Promise<void>;
  readonly giveUp: AbortController;
  callers: number;
}

/** One pull per image, however many ask for it. It is given up when the last of them has. */
export class SharedPulls {
  readonly #pull: (reference: string, signal: AbortSignal) => Promise<void>;
  readonly #going = new Map<string, Pull>();

  constructor(pull: (reference: string, signal: AbortSignal) => Promise<void>) {
    this.#pull = pull;
  }

  async pull(reference: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw aborted(reference);
    const pull = this.#going.get(reference) ?? this.#begin(reference);
    pull.callers += 1;
    let leave = () => {};
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(aborted(reference));
    });
    signal.addEventListener("abort", leave, { once: true });
    try {
      await Promise.race([pull.ended, left]);
    } finally {
      signal.removeEventListener("abort", leave);
      pull.callers -= 1;
      if (pull.callers === 0) this.#abandon(reference, pull);
    }
  }

  #begin(reference: string): Pull {
    const giveUp = new AbortController();
    const ended = this.#pull(reference, giveUp.signal);
    const pull: Pull = { ended, giveUp, callers: 0 };
    this.#going.set(reference, pull);
    const forget = () => this.#forget(reference, pull);
    ended.then(forget, forget);
    return pull;
  }

  #abandon(reference: string, pull: Pull): void {
    // Whoever comes from now on begins anew rather than share one that is being given up.
    this.#forget(reference, pull);
    pull.giveUp.abort();
  }

  #forget(reference: string, pull: Pull): void {
    if (this.#going.get(reference) === pull) this.#going.delete(reference);
  }
}

function aborted(reference: string): RuntimeError {
  return new RuntimeError("ABORTED", `pull of ${reference}: given up`, { retryable: true });
}
