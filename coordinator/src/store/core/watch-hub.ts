import type { Revision, WatchBatch } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { Watcher, type WatchSource } from "./watcher.ts";

/** Holds all live watchers of a store. */
export class WatchHub {
  readonly #source: WatchSource;
  readonly #watchers = new Set<Watcher>();

  constructor(source: WatchSource) {
    this.#source = source;
  }

  open(prefix: string, from: Revision, compactRevision: Revision, signal: AbortSignal): Watcher {
    const stop = (): void => watcher.end();
    const watcher = new Watcher(this.#source, prefix, Math.max(1, from), () => {
      signal.removeEventListener("abort", stop);
      this.#watchers.delete(watcher);
    });
    this.#watchers.add(watcher);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) watcher.end();
    else if (Math.max(1, from) <= compactRevision) watcher.end(compacted(from, compactRevision));
    return watcher;
  }

  notify(): void {
    for (const watcher of this.#watchers) watcher.notify();
  }

  compacting(revision: Revision): void {
    for (const watcher of this.#watchers) watcher.compacting(revision);
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.end(new StoreError("CLOSED", "the store was closed"));
  }
}

/** Returns a watch that fails at once. */
export function failedWatch(error: unknown): AsyncIterable<WatchBatch> {
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) };
}

export function compacted(revision: Revision, compactRevision: Revision): StoreError {
  const message = `revision ${revision} was compacted: the history starts after ${compactRevision}`;
  return new StoreError("COMPACTED", message, { compactRevision });
}
