import { createHash } from "node:crypto";
import { type PullOptions, type PullState, type RegistryLogin, RuntimeError } from "../runtime.ts";

/** Performs one pull. `credentials` contains only those for the image's registry. */
export type PullOnce = (
  reference: string,
  credentials: readonly RegistryLogin[],
  onProgress: (state: PullState) => void,
  signal: AbortSignal,
) => Promise<void>;

interface Pull {
  readonly ended: Promise<void>;
  readonly giveUp: AbortController;
  readonly listeners: Set<(state: PullState) => void>;
  callers: number;
}

/**
 * Shares one pull for each image and set of credentials between all callers. The pull is cancelled when the last caller
 * has cancelled.
 */
export class SharedPulls {
  readonly #pull: PullOnce;
  readonly #going = new Map<string, Pull>();

  constructor(pull: PullOnce) {
    this.#pull = pull;
  }

  async pull(reference: string, signal: AbortSignal, options: PullOptions = {}): Promise<void> {
    if (signal.aborted) throw aborted(reference);
    const { credentials = [], onProgress } = options;
    const key = keyOf(reference, credentials);
    const pull = this.#going.get(key) ?? this.#begin(key, reference, credentials);
    pull.callers += 1;
    // Wrap the function, because two callers may pass the same one.
    const listener = (state: PullState) => onProgress?.(state);
    pull.listeners.add(listener);
    let leave = () => {};
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(aborted(reference));
    });
    signal.addEventListener("abort", leave, { once: true });
    try {
      await Promise.race([pull.ended, left]);
    } finally {
      signal.removeEventListener("abort", leave);
      pull.listeners.delete(listener);
      pull.callers -= 1;
      if (pull.callers === 0) this.#abandon(key, pull);
    }
  }

  #begin(key: string, reference: string, credentials: readonly RegistryLogin[]): Pull {
    const giveUp = new AbortController();
    const listeners: Pull["listeners"] = new Set();
    const notify = (state: PullState) => {
      for (const listener of listeners) listener(state);
    };
    const ended = this.#pull(reference, credentials, notify, giveUp.signal);
    const pull: Pull = { ended, giveUp, listeners, callers: 0 };
    this.#going.set(key, pull);
    const forget = () => this.#forget(key, pull);
    ended.then(forget, forget);
    return pull;
  }

  #abandon(key: string, pull: Pull): void {
    // Later callers start a new pull instead of sharing the cancelled one.
    this.#forget(key, pull);
    pull.giveUp.abort();
  }

  #forget(key: string, pull: Pull): void {
    if (this.#going.get(key) === pull) this.#going.delete(key);
  }
}

// The key is a digest, so that no password is kept only for comparison.
function keyOf(reference: string, credentials: readonly RegistryLogin[]): string {
  if (credentials.length === 0) return reference;
  const text = JSON.stringify(credentials.map((it) => [it.server, it.username, it.password]));
  return `${reference} ${createHash("sha256").update(text).digest("hex")}`;
}

function aborted(reference: string): RuntimeError {
  return new RuntimeError("ABORTED", `pull of ${reference}: cancelled`, { retryable: true });
}
