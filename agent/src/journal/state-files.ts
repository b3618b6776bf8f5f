import { join } from "node:path";
import type { JournalFiles } from "./journal-files.ts";
import { stateFileName } from "./load-journal.ts";
import { encodePodState, type PodState } from "./pod-state.ts";
import { encodeRecord, RECORD_KIND } from "./record-frame.ts";

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes the states of pods in batches, one at a time. Changes during a batch are coalesced into the next one, which
 * contains only the last state of each pod. So at most one write per pod is waiting.
 */
export class StateFiles {
  readonly #dir: string;
  readonly #files: JournalFiles;
  /** Changed states by uid. Undefined: the file has to be removed. */
  #changed = new Map<string, PodState | undefined>();
  #waiters: Waiter[] = [];
  #writing: Promise<void> | undefined;

  constructor(dir: string, files: JournalFiles) {
    this.#dir = dir;
    this.#files = files;
  }

  /** Writes a state. Resolves when this or a later state of the same pod is on disk. */
  write(uid: string, state: PodState | undefined): Promise<void> {
    this.#changed.set(uid, state);
    const written = new Promise<void>((resolve, reject) => this.#waiters.push({ resolve, reject }));
    this.#writing ??= this.#writeAll();
    return written;
  }

  /** Resolves when no write is waiting. */
  async settle(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#changed.size > 0) {
      // Let all changes in this turn of the event loop share the first batch.
      await Promise.resolve();
      const changed = this.#changed;
      const waiters = this.#waiters;
      this.#changed = new Map();
      this.#waiters = [];
      try {
        await writeBatch(this.#dir, this.#files, changed);
        for (const waiter of waiters) waiter.resolve();
      } catch (error) {
        for (const waiter of waiters) waiter.reject(error);
      }
    }
    this.#writing = undefined;
  }
}

async function writeBatch(
  dir: string,
  disk: JournalFiles,
  changed: ReadonlyMap<string, PodState | undefined>,
): Promise<void> {
  const files: { name: string; bytes: Buffer }[] = [];
  const removed: string[] = [];
  for (const [uid, state] of changed) {
    if (state === undefined) removed.push(uid);
    else
      files.push({ name: stateFileName(uid), bytes: encodeRecord(RECORD_KIND.state, encodePodState(state)) });
  }
  await Promise.all(removed.map((uid) => disk.remove(join(dir, stateFileName(uid)))));
  if (files.length > 0) await disk.write(dir, files);
  else await disk.sync(dir);
}
