import { CoordinatorError } from "../errors.ts";
import type { ApiTokenEntry } from "../state/entries.ts";
import type { Caller } from "./caller.ts";

export interface TokenWatchOptions {
  readonly findToken: (id: string) => ApiTokenEntry | undefined;
  readonly nowMs: () => number;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
}

/** Streams end within a second of the end of their token; half of it is for the stream itself. */
const INTERVAL_MS = 500;

/**
 * Ends streams whose token was revoked or has expired: a token is verified when a stream opens, and streams may stay open for days.
 * Looks at each token with open streams twice a second, and not at all while there are none.
 */
export class TokenWatch {
  readonly #options: TokenWatchOptions;
  readonly #streams = new Map<string, Set<(error: CoordinatorError) => void>>();
  #cancel: (() => void) | undefined;

  constructor(options: TokenWatchOptions) {
    this.#options = options;
  }

  /** Calls `lapse` once if the caller's token ends while the stream is open. Returns how to stop watching. */
  watch(caller: Caller, lapse: (error: CoordinatorError) => void): () => void {
    const { tokenId: id } = caller;
    if (id === undefined) return () => {};
    const streams = this.#streams.get(id) ?? new Set();
    streams.add(lapse);
    this.#streams.set(id, streams);
    this.#arm();
    return () => {
      streams.delete(lapse);
      if (streams.size === 0 && this.#streams.get(id) === streams) this.#streams.delete(id);
      if (this.#streams.size === 0) this.close();
    };
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(): void {
    this.#cancel ??= this.#options.schedule(INTERVAL_MS, () => {
      this.#cancel = undefined;
      this.#sweep();
      if (this.#streams.size > 0) this.#arm();
    });
  }

  #sweep(): void {
    for (const [id, streams] of this.#streams) {
      const problem = this.#problemOf(id);
      if (problem === undefined) continue;
      this.#streams.delete(id);
      for (const lapse of streams) lapse(new CoordinatorError("UNAUTHENTICATED", problem));
    }
  }

  #problemOf(id: string): string | undefined {
    const record = this.#options.findToken(id)?.record;
    if (record === undefined) return "the token was revoked";
    const { expiresAtMs = Number.POSITIVE_INFINITY } = record;
    return this.#options.nowMs() >= expiresAtMs ? "the token has expired" : undefined;
  }
}
