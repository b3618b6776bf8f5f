import type { Clock } from "../clock.ts";
import type { SandboxRecord } from "./sandbox-records.ts";

/**
 * The pause after a sandbox is taken before the pool prepares new ones. Pods start in waves, and preparing would
 * compete with their starts.
 */
const QUIET_MS = 1_000;
const RETRY_MS = 30_000;

export interface SandboxPoolOptions {
  readonly size: number;
  readonly clock: Clock;
  /** Makes a sandbox for the pool. */
  readonly make: () => Promise<SandboxRecord>;
  readonly onError: (error: unknown) => void;
}

/** Sandboxes prepared in advance, so that a pod's start doesn't wait for CNI. The pool refills itself one by one. */
export class SandboxPool {
  readonly #options: SandboxPoolOptions;
  readonly #spare: SandboxRecord[] = [];
  #closed = false;
  #cancelTimer: (() => void) | undefined;
  #making: Promise<void> | undefined;

  constructor(options: SandboxPoolOptions) {
    this.#options = options;
  }

  /** Starts preparing, with the given spare sandboxes. */
  start(spare: readonly SandboxRecord[]): void {
    this.#spare.push(...spare);
    this.#refillAfter(QUIET_MS);
  }

  get spareCount(): number {
    return this.#spare.length;
  }

  /** Returns a prepared sandbox, or creates one. */
  async acquire(): Promise<SandboxRecord> {
    this.#refillAfter(QUIET_MS);
    return this.#spare.pop() ?? (await this.#options.make());
  }

  /** Returns an unused sandbox to the pool. */
  release(spare: SandboxRecord): void {
    this.#spare.push(spare);
  }

  /**
   * Drops and returns the spare sandboxes that no longer exist. `findIntact` returns those of its argument that do.
   * Sandboxes taken in the meantime are left to their pods.
   */
  async dropBroken(
    findIntact: (spare: readonly SandboxRecord[]) => Promise<readonly SandboxRecord[]>,
  ): Promise<readonly SandboxRecord[]> {
    const checked = [...this.#spare];
    const intact = new Set(await findIntact(checked));
    const broken = checked.filter((record) => !intact.has(record) && this.#spare.includes(record));
    for (const record of broken) this.#spare.splice(this.#spare.indexOf(record), 1);
    if (broken.length > 0) this.#refillAfter(QUIET_MS);
    return broken;
  }

  /** Resolves once no sandbox is being created. Spare sandboxes stay for the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer?.();
    await this.#making;
  }

  #refillAfter(delayMs: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#closed) return;
    this.#cancelTimer = this.#options.clock.schedule(delayMs, () => {
      this.#cancelTimer = undefined;
      // Cleared here instead of in the refill, because a refill that finds the pool full ends before it is assigned.
      this.#making ??= this.#refill().finally(() => {
        this.#making = undefined;
      });
    });
  }

  // Fills the pool. Stops when a sandbox is taken meanwhile, because that sets the timer again.
  async #refill(): Promise<void> {
    try {
      while (!this.#closed && this.#cancelTimer === undefined && this.#spare.length < this.#options.size) {
        this.#spare.push(await this.#options.make());
      }
    } catch (error) {
      this.#options.onError(error);
      this.#refillAfter(RETRY_MS);
    }
  }
}
