import type { VirtualClock } from "@forage/common/virtual-clock";
import {
  type Compare,
  type Lease,
  type LeaseId,
  type Op,
  type RangeOptions,
  type RangeResult,
  type ReadOptions,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreHealth,
  type TxnResult,
  type WatchBatch,
} from "../../coordinator/src/store/index.ts";
import type { ProcessGate } from "./process-gate.ts";

/** The result of one write: it is done, or the process dies just before or just after it. */
export type Fate = "done" | "die-before" | "die-after";

export interface LifeStoreOptions {
  /** The store that survives the process. */
  readonly durable: Store;
  readonly time: VirtualClock;
  /** Aborted when the process dies. Nothing happens after that. */
  readonly life: AbortSignal;
  readonly die: () => void;
  readonly delayMs: () => number;
  /** Reports whether there is no space left for writes. */
  readonly full: () => boolean;
  readonly gate: ProcessGate;
  /** Called for each write that reaches the disk. */
  readonly fate: () => Fate;
  /** Called with each write before it is done. The returned function is called with the result. */
  readonly witness: (compares: readonly Compare[], ops: readonly Op[]) => (result: TxnResult) => void;
}

/** The store as one life of a coordinator sees it: slow, and dead when the coordinator dies. */
export class LifeStore implements Store {
  readonly #options: LifeStoreOptions;
  #lastWriteMs = 0;

  constructor(options: LifeStoreOptions) {
    this.#options = options;
  }

  get revision(): number {
    return this.#options.durable.revision;
  }

  get compactRevision(): number {
    return this.#options.durable.compactRevision;
  }

  async get(key: string, options?: ReadOptions): Promise<StoredRecord | undefined> {
    await this.#pause();
    return this.#options.durable.get(key, options);
  }

  async range(prefix: string, options?: RangeOptions): Promise<RangeResult> {
    await this.#pause();
    return this.#options.durable.range(prefix, options);
  }

  async txn(compares: readonly Compare[], ops: readonly Op[]): Promise<TxnResult> {
    const { durable, die, fate, witness, life } = this.#options;
    const committed = witness(compares, ops);
    await this.#pause(this.#writeDelayMs());
    if (this.#options.full()) throw new StoreError("NO_SPACE", "the disk is full");
    const end = fate();
    if (end === "die-before") die();
    if (life.aborted) return never();
    const result = await durable.txn(compares, ops);
    committed(result);
    if (end === "die-after") die();
    await this.#pause();
    return result;
  }

  async *watch(prefix: string, fromRevision: number, signal: AbortSignal): AsyncGenerator<WatchBatch> {
    const { durable, life } = this.#options;
    for await (const batch of durable.watch(prefix, fromRevision, AbortSignal.any([signal, life]))) {
      await this.#pause();
      yield batch;
    }
    if (life.aborted) await never();
  }

  lease(ttlMs: number): Promise<Lease> {
    return this.#options.durable.lease(ttlMs);
  }

  findLease(id: LeaseId): Promise<Lease> {
    return this.#options.durable.findLease(id);
  }

  compact(revision: number): Promise<void> {
    return this.#options.durable.compact(revision);
  }

  health(): StoreHealth {
    return this.#options.durable.health();
  }

  async close(): Promise<void> {}

  /** Returns the delay of a write. Writes are done in the order of their requests, also after a stall. */
  #writeDelayMs(): number {
    const { time, delayMs } = this.#options;
    this.#lastWriteMs = Math.max(this.#lastWriteMs, time.nowMs() + delayMs());
    return this.#lastWriteMs - time.nowMs();
  }

  #pause(forMs = this.#options.delayMs()): Promise<void> {
    const { time, life, gate } = this.#options;
    if (life.aborted) return never();
    return new Promise((resolve) =>
      time.schedule(Math.round(forMs), () =>
        gate.input(() => {
          if (!life.aborted) resolve();
        }),
      ),
    );
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}
