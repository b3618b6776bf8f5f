import type { Clock } from "./clock.ts";
import type { Journal } from "./journal/journal.ts";
import type { PodMemory } from "./pods/pod.ts";
import { toPodState } from "./pods/stored-memory.ts";

export interface StateSaverOptions {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

// A full disk is not emptied in a moment, and the journal holds the newest state until then.
const AGAIN_MS = 5_000;

/** Writes pods' memories to the journal; what can't be written is tried again, and never stops a pod. */
export class StateSaver {
  readonly #options: StateSaverOptions;
  readonly #unsaved = new Set<string>();
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(options: StateSaverOptions) {
    this.#options = options;
  }

  /** Resolves when it is on disk, or could not be written. */
  async save(podUid: string, memory: PodMemory): Promise<void> {
    await this.#write(podUid, () => this.#options.journal.saveState(podUid, toPodState(memory)));
  }

  async forget(podUid: string): Promise<void> {
    this.#unsaved.delete(podUid);
    await this.#options.journal.remove(podUid).catch((error) => this.#options.onError(error));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
  }

  async #write(podUid: string, write: () => Promise<void>): Promise<void> {
    try {
      await write();
      this.#unsaved.delete(podUid);
    } catch (error) {
      if (this.#closed) return;
      this.#options.onError(error);
      this.#unsaved.add(podUid);
      this.#cancel ??= this.#options.clock.after(AGAIN_MS, () => this.#again());
    }
  }

  #again(): void {
    this.#cancel = undefined;
    const { journal } = this.#options;
    for (const podUid of this.#unsaved) {
      const state = journal.state(podUid);
      if (state === undefined) this.#unsaved.delete(podUid);
      else void this.#write(podUid, () => journal.saveState(podUid, state));
    }
  }
}
