import type { Clock } from "../clock.ts";
import type { SandboxRecord } from "./sandbox-records.ts";

/**
 * The pause before the pool prepares sandboxes, after one was taken. Pods come in waves, and preparing would compete with their
 * starts.
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

/** Sandboxes prepared ahead, so that a pod's start doesn't wait for CNI. Refills itself, one at a time. */
export class SandboxPool {
  readonly #options: SandboxPoolOptions;
  readonly #spare: SandboxRecord[] = [];
  #closed = false;
  #cancelTimer: (() => void) | undefined;
  #making: Promise<void> | undefined;

  constructor(options: SandboxPoolOptions) {
    this.#options = options;
  }

  /** Starts preparing, with what there is already. */
  start(spare: readonly SandboxRecord[]): void {
    this.#spare.push(...spare);
    this.#refillAfter(QUIET_MS);
  }

  get spareCount(): number {
    return this.#spare.length;
  }

  /** A prepared one, or else one made now. */
  async take(): Promise<SandboxRecord> {
    this.#refillAfter(QUIET_MS);
    return this.#spare.pop() ?? (await this.#options.make());
  }

  /** Takes back one that was never used. */
  giveBack(spare: SandboxRecord): void {
    this.#spare.push(spare);
  }

  /**
   * Drops and returns the spare sandboxes that are no longer in place. `findIntact` returns those of its argument that are.
   * Sandboxes that are taken meanwhile are left to their pods.
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

  /** Resolves once nothing is being made; what is spare stays for the next start. */
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
      // Cleared here and not in the refill: one that finds the pool full ends before it is assigned.
      this.#making ??= this.#refill().finally(() => {
        this.#making = undefined;
      });
    });
  }

  // Fills the pool. It stops when a sandbox is taken meanwhile, because that sets the timer again.
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
