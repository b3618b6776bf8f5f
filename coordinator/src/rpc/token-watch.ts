import { CoordinatorError } from "../errors.ts";
import type { ApiTokenEntry, Change } from "../state/entries.ts";
import type { Caller } from "./caller.ts";

export type TokenChange = Pick<Extract<Change, { type: "api-token" }>, "before" | "after">;

export interface TokenWatchOptions {
  readonly findToken: (id: string) => ApiTokenEntry | undefined;
  readonly nowMs: () => number;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
}

/**
 * The longest time until an expiry is detected after the wall clock was set forward. A revocation
 * is an event and needs no timer.
 */
const MAX_WAIT_MS = 10_000;
/** A timer may fire slightly early. */
const MIN_WAIT_MS = 1;

/**
 * Ends streams whose token was revoked or has expired: tokens are verified when a stream opens, and
 * streams may stay open for days. `changed` must be called for each change of a token. A timer
 * waits for the next expiry while a token with an expiry has open streams.
 */
export class TokenWatch {
  readonly #options: TokenWatchOptions;
  readonly #streams = new Map<string, Set<(error: CoordinatorError) => void>>();
  #timer: { readonly dueMs: number; readonly cancel: () => void } | undefined;

  constructor(options: TokenWatchOptions) {
    this.#options = options;
  }

  /**
   * Calls `lapse` once if the caller's token ends while the stream is open. The caller must have
   * been identified in the current turn of the event loop. Returns a function that stops watching.
   */
  watch(caller: Caller, lapse: (error: CoordinatorError) => void): () => void {
    const { tokenId: id } = caller;
    if (id === undefined) return () => {};
    const streams = this.#streams.get(id);
    if (streams === undefined) {
      this.#streams.set(id, new Set([lapse]));
      this.#await(this.#expiryOf(id));
    } else streams.add(lapse);
    return () => this.#forget(id, lapse);
  }

  /** Handles a created, changed or removed token. */
  changed({ before, after }: TokenChange): void {
    const id = (after ?? before)?.id;
    if (id !== undefined) this.#check(id);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #check(id: string): void {
    const streams = this.#streams.get(id);
    if (streams === undefined) return;
    const problem = this.#problemOf(id);
    if (problem === undefined) {
      this.#await(this.#expiryOf(id));
      return;
    }
    this.#streams.delete(id);
    for (const lapse of streams) lapse(new CoordinatorError("UNAUTHENTICATED", problem));
    if (this.#streams.size === 0) this.close();
  }

  #forget(id: string, lapse: (error: CoordinatorError) => void): void {
    const streams = this.#streams.get(id);
    if (!streams?.delete(lapse) || streams.size > 0) return;
    this.#streams.delete(id);
    if (this.#streams.size === 0) this.close();
  }

  /** Schedules a check of all tokens at the given time or earlier. */
  #await(expiresAtMs: number): void {
    if (expiresAtMs === Number.POSITIVE_INFINITY) return;
    const { nowMs, schedule } = this.#options;
    const delayMs = Math.min(Math.max(expiresAtMs - nowMs(), MIN_WAIT_MS), MAX_WAIT_MS);
    const dueMs = nowMs() + delayMs;
    if (this.#timer !== undefined && this.#timer.dueMs <= dueMs) return;
    this.close();
    const cancel = schedule(delayMs, () => {
      this.#timer = undefined;
      for (const id of [...this.#streams.keys()]) this.#check(id);
    });
    this.#timer = { dueMs, cancel };
  }

  #expiryOf(id: string): number {
    return this.#options.findToken(id)?.record.expiresAtMs ?? Number.POSITIVE_INFINITY;
  }

  #problemOf(id: string): string | undefined {
    if (this.#options.findToken(id) === undefined) return "the token was revoked";
    return this.#options.nowMs() >= this.#expiryOf(id) ? "the token has expired" : undefined;
  }
}
