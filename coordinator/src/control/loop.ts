import { type BackOff, backOffMs } from "@forage/common/back-off";
import type { Log } from "@forage/common/log";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";

export interface LoopOptions {
  readonly name: string;
  /** Reconciles the key. Returns the milliseconds after which to evaluate it again even if it was not woken. */
  readonly reconcile: (key: string) => Promise<number | undefined>;
  readonly clock: Clock;
  /** Returns the shortest delay before a repeated evaluation without a wake. Default: none. */
  readonly leastDelayMs?: () => number;
  readonly log: Log;
  /** Nothing is reconciled before it resolves. Default: resolved. */
  readonly started?: Promise<void> | undefined;
  /** Returns the pause of a key after a run, which limits how often events cause an expensive evaluation. Default: none. */
  readonly restMs?: (key: string) => number;
  /** The view whose changes are passed to `wakeFor` until the loop is closed. */
  readonly state?: Pick<ClusterView, "subscribe">;
  /** Wakes the keys that the changes affect. */
  readonly wakeFor?: (changes: readonly Change[]) => void;
}

/** The delay of a retry after a failure, doubling from the first value to the second. */
const RETRY: BackOff = { baseMs: 200, capMs: 30_000 };

/**
 * Runs a level-triggered loop over keys, one key at a time. A key that was woken any number of times runs once. A failing
 * key is retried later without delaying other keys.
 */
export class Loop {
  readonly #options: LoopOptions;
  readonly #due = new Set<string>();
  readonly #timers = new Map<string, () => void>();
  /** The resting keys: whether they were woken during the rest, and a function that ends it. */
  readonly #resting = new Map<string, { woken: boolean; readonly cancel: () => void }>();
  readonly #failures = new Map<string, number>();
  #running: Promise<void> | undefined;
  readonly #unsubscribe: (() => void) | undefined;
  #closed = false;

  constructor(options: LoopOptions) {
    this.#options = options;
    const { state, wakeFor } = options;
    this.#unsubscribe = wakeFor && state?.subscribe(wakeFor);
  }

  wake(key: string): void {
    if (this.#closed) return;
    const rest = this.#resting.get(key);
    if (rest !== undefined) {
      rest.woken = true;
      return;
    }
    this.#due.add(key);
    this.#running ??= this.#run();
  }

  /** Stops the loop after the running key. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unsubscribe?.();
    this.#due.clear();
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    for (const { cancel } of this.#resting.values()) cancel();
    this.#resting.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    await (this.#options.started ?? Promise.resolve());
    for (const key of this.#due) {
      this.#due.delete(key);
      this.#timers.get(key)?.();
      this.#timers.delete(key);
      const again = await this.#step(key);
      if (this.#closed) break;
      this.#rest(key);
      if (again !== undefined) this.#wakeLater(key, again);
    }
    this.#running = undefined;
    if (this.#due.size > 0 && !this.#closed) this.#running = this.#run();
  }

  async #step(key: string): Promise<number | undefined> {
    try {
      const again = await this.#options.reconcile(key);
      this.#failures.delete(key);
      return again;
    } catch (error) {
      const failures = (this.#failures.get(key) ?? 0) + 1;
      this.#failures.set(key, failures);
      this.#options.log.warn({ event: "step-failed", loop: this.#options.name, key, failures, err: error });
      return backOffMs(failures, RETRY);
    }
  }

  #rest(key: string): void {
    const restMs = this.#options.restMs?.(key) ?? 0;
    if (restMs <= 0) return;
    const woken = this.#due.delete(key);
    const cancel = this.#options.clock.schedule(restMs, () => {
      const rest = this.#resting.get(key);
      this.#resting.delete(key);
      if (rest?.woken) this.wake(key);
    });
    this.#resting.set(key, { woken, cancel });
  }

  #wakeLater(key: string, delayMs: number): void {
    const { clock, leastDelayMs = () => 0 } = this.#options;
    this.#timers.set(
      key,
      clock.schedule(Math.max(delayMs, leastDelayMs()), () => {
        this.#timers.delete(key);
        this.wake(key);
      }),
    );
  }
}
