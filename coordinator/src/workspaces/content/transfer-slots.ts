import { CoordinatorError } from "../../errors.ts";

export interface TransferLimits {
  /** The most concurrent uploads and downloads of one node. */
  readonly perNode: number;
  /** The most concurrent uploads and downloads of all nodes. */
  readonly total: number;
  /** The time within which the peer must send or accept the next chunk. */
  readonly idleMs: number;
  /** The largest archive, in bytes. */
  readonly maxArchiveBytes: number;
}

export const DEFAULT_TRANSFER_LIMITS: TransferLimits = {
  /** More transfers of one node would only share its disk and network. */
  perNode: 5,
  /**
   * Each transfer holds about 2 MiB of buffers, and with S3 also parts of 16 MiB; together they
   * stay below 2 GiB.
   */
  total: 64,
  /** A disk that is flushing may stall for many seconds. */
  idleMs: 120_000,
  /**
   * More than most nodes have disk space for one workspace. It keeps one archive from filling the
   * store.
   */
  maxArchiveBytes: 1024 ** 4,
};

/** Limits the number of transfers in progress. */
export class TransferSlots {
  readonly #limits: Pick<TransferLimits, "perNode" | "total">;
  readonly #ofNode = new Map<string, number>();
  #total = 0;

  constructor(limits: Pick<TransferLimits, "perNode" | "total">) {
    this.#limits = limits;
  }

  get open(): number {
    return this.#total;
  }

  /**
   * Acquires a slot. Returns a function that releases it; repeated calls have no effect. Throws
   * RESOURCE_EXHAUSTED if no slot is free.
   */
  acquire(node: string): () => void {
    const ofNode = this.#ofNode.get(node) ?? 0;
    if (ofNode >= this.#limits.perNode) throw exhausted(`node ${node}`, this.#limits.perNode);
    if (this.#total >= this.#limits.total) throw exhausted("the coordinator", this.#limits.total);
    this.#total += 1;
    this.#ofNode.set(node, ofNode + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#total -= 1;
      const left = (this.#ofNode.get(node) ?? 1) - 1;
      if (left === 0) this.#ofNode.delete(node);
      else this.#ofNode.set(node, left);
    };
  }
}

function exhausted(who: string, limit: number): CoordinatorError {
  return new CoordinatorError(
    "RESOURCE_EXHAUSTED",
    `${who} has ${limit} transfers of workspace content in progress, the limit: try again later`,
  );
}
