import { unpackBytes } from "../packed-bytes.ts";
import type { Revision, StoredRecord, WatchBatch, WatchEvent } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Commit, Version } from "./timeline.ts";

/** The durable commits that a watcher reads. */
export interface WatchSource {
  readonly durable: Revision;
  commit(revision: Revision): Commit | undefined;
}

/**
 * A cursor in the store's history. It has no buffer, so a slow reader uses no memory: when the history is compacted past
 * the cursor, the watcher fails with SLOW.
 */
export class Watcher implements AsyncIterableIterator<WatchBatch> {
  readonly #source: WatchSource;
  readonly #prefix: string;
  readonly #onEnd: (watcher: Watcher) => void;
  #next: Revision;
  #wake: (() => void) | undefined;
  #ended = false;
  #failure: StoreError | undefined;

  constructor(source: WatchSource, prefix: string, from: Revision, onEnd: (watcher: Watcher) => void) {
    this.#source = source;
    this.#prefix = prefix;
    this.#next = from;
    this.#onEnd = onEnd;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<WatchBatch, undefined>> {
    if (this.#wake !== undefined)
      throw new StoreError("INVALID_ARGUMENT", "next() must not be called while another call is pending");
    for (;;) {
      if (this.#ended) return this.#last();
      const batch = this.#advance();
      if (batch !== undefined) return { done: false, value: batch };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }

  async return(): Promise<IteratorResult<WatchBatch, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }

  /** Ends the watch, with an error if one is given. */
  end(failure?: StoreError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = failure;
    this.#onEnd(this);
    this.#wake?.();
  }

  /** Called after new commits. Wakes the reader if one of them has a change under its prefix. */
  notify(): void {
    if (this.#wake === undefined) return;
    this.#skip(this.#source.durable);
    if (this.#next <= this.#source.durable) this.#wake();
  }

  /** Called before commits up to the revision are removed. */
  compacting(revision: Revision): void {
    if (this.#next > revision) return;
    this.#skip(revision);
    if (this.#next > revision) return;
    const message = `revision ${this.#next} was compacted before the watcher read it: read the range again`;
    this.end(new StoreError("SLOW", message, { compactRevision: revision }));
  }

  #last(): IteratorReturnResult<undefined> {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    return { done: true, value: undefined };
  }

  #advance(): WatchBatch | undefined {
    this.#skip(this.#source.durable);
    const revision = this.#next;
    if (revision > this.#source.durable) return undefined;
    const changes = this.#source.commit(revision)?.changes ?? [];
    this.#next++;
    return { revision, events: changes.filter((change) => this.#concerns(change)).map(toEvent) };
  }

  /** Moves to the next commit with a change under the prefix, but not past the given revision. */
  #skip(through: Revision): void {
    while (this.#next <= through) {
      const commit = this.#source.commit(this.#next);
      if (commit?.changes.some((change) => this.#concerns(change))) return;
      this.#next++;
    }
  }

  #concerns(change: Version): boolean {
    return change.key.startsWith(this.#prefix);
  }
}

export function toRecord(version: Version): StoredRecord {
  const { key, createRevision, modRevision, lease } = version;
  const value = version.value === undefined ? new Uint8Array() : unpackBytes(version.value);
  const record = { key, value, createRevision, modRevision, version: version.version };
  return lease === undefined ? record : { ...record, lease };
}

function toEvent(change: Version): WatchEvent {
  return change.value === undefined
    ? { type: "delete", key: change.key }
    : { type: "put", record: toRecord(change) };
}
