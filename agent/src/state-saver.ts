import { messageOf } from "@forage/common/message-of";
import type { Clock } from "./clock.ts";
import type { Journal } from "./journal/journal.ts";
import type { PodMemory } from "./pods/pod.ts";
import { toPodState } from "./pods/stored-memory.ts";

export interface StateSaverOptions {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  /**
   * Called with the reason why a pod's state is not on disk, and with undefined when all are. Called on changes only.
   */
  readonly onHealth?: (problem: string | undefined) => void;
}

// Disks rarely get free space quickly, and the journal holds the newest state until then.
const AGAIN_MS = 5_000;

/** Writes the memories of pods to the journal. Failed writes are retried and never stop a pod. */
export class StateSaver {
  readonly #options: StateSaverOptions;
  readonly #unsaved = new Set<string>();
  /** Pods whose record could not be removed yet. */
  readonly #unforgotten = new Set<string>();
  #problem: string | undefined;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(options: StateSaverOptions) {
    this.#options = options;
  }

  /** Saves a memory. Resolves to whether it is on disk. */
  save(podUid: string, memory: PodMemory): Promise<boolean> {
    return this.#write(podUid, () => this.#options.journal.saveState(podUid, toPodState(memory)));
  }

  /** Saves the memory of a pod that is over. Rejects if a restart could run the pod again. */
  async saveOutcome(podUid: string, memory: PodMemory): Promise<void> {
    if (await this.save(podUid, memory)) return;
    throw new Error(`the pod's outcome is not on disk: ${this.#problem}`);
  }

  /**
   * Saves the memory of a pod that was removed from the host. If that can't be written, removes the pod's record
   * instead. Rejects if a restart could start the pod again.
   */
  async saveRemoved(podUid: string, memory: PodMemory): Promise<void> {
    const { journal } = this.#options;
    if (await this.#write(podUid, () => journal.saveState(podUid, toPodState(memory)))) return;
    await journal.removeRecord(podUid);
  }

  /** Removes the pod's files. Resolves also if that fails. */
  async forget(podUid: string): Promise<void> {
    this.#unsaved.delete(podUid);
    try {
      await this.#options.journal.remove(podUid);
      this.#unforgotten.delete(podUid);
      this.#reportHealth(undefined);
    } catch (error) {
      this.#failed(error, () => this.#unforgotten.add(podUid));
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
  }

  /** Runs a write and returns whether it succeeded. */
  async #write(podUid: string, write: () => Promise<void>): Promise<boolean> {
    try {
      await write();
      this.#unsaved.delete(podUid);
      this.#reportHealth(undefined);
      return true;
    } catch (error) {
      this.#failed(error, () => this.#unsaved.add(podUid));
      return false;
    }
  }

  #failed(error: unknown, remember: () => void): void {
    if (this.#closed) return;
    this.#options.onError(error);
    remember();
    this.#reportHealth(messageOf(error));
    this.#cancel ??= this.#options.clock.schedule(AGAIN_MS, () => this.#again());
  }

  /** Reports the health. A success ends the problem only once no write is pending. */
  #reportHealth(problem: string | undefined): void {
    const isHeldUp = this.#unsaved.size + this.#unforgotten.size > 0;
    if (problem === this.#problem || (problem === undefined && isHeldUp)) return;
    this.#problem = problem;
    this.#options.onHealth?.(problem);
  }

  #again(): void {
    this.#cancel = undefined;
    const { journal } = this.#options;
    for (const podUid of this.#unsaved) {
      const state = journal.state(podUid);
      if (state === undefined) this.#unsaved.delete(podUid);
      else void this.#write(podUid, () => journal.saveState(podUid, state));
    }
    for (const podUid of this.#unforgotten) void this.forget(podUid);
    this.#reportHealth(undefined);
  }
}
