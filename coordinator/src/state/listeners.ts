import type { Change } from "./entries.ts";

type Listener<C> = (changes: C) => void;

/** Calls the listeners of a view. An error of one listener doesn't affect the others. */
export class Listeners<C = readonly Change[]> {
  readonly #listeners = new Set<Listener<C>>();
  readonly #onError: ((error: unknown) => void) | undefined;

  /** `onError` receives the first error of a call after all listeners were called. Default: it is thrown. */
  constructor(onError?: (error: unknown) => void) {
    this.#onError = onError;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Adds a listener. Returns a function that removes it. */
  add(listener: Listener<C>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  call(changes: C): void {
    let failure: { readonly error: unknown } | undefined;
    for (const listener of this.#listeners) {
      try {
        listener(changes);
      } catch (error) {
        failure ??= { error };
      }
    }
    if (failure === undefined) return;
    if (this.#onError === undefined) throw failure.error;
    this.#onError(failure.error);
  }
}
