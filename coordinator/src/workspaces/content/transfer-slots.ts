import { CoordinatorError } from "../../errors.ts";

export interface TransferLimits {
  /** Uploads and downloads at a time of one node. */
  readonly perNode: number;
  /** Uploads and downloads at a time of all nodes. */
  readonly total: number;
  /** Time within which the peer must send or accept the next part. */
  readonly idleMs: number;
  /** The largest archive, in bytes. */
  readonly maxArchiveBytes: number;
}

export const DEFAULT_TRANSFER_LIMITS: TransferLimits = {
  /** The limit of one node's transfers at a time. More would only share its disk and network. */
  perNode: 5,
  /**
   * The limit of all transfers. Each holds about 2 MiB of buffers, and each of S3 its parts of 16 MiB; together they stay
   * below 2 GiB.
   */
  total: 64,
  /** A disk that is busy with a flush may stall for many seconds. */
  idleMs: 120_000,
  /**
   * The limit of an archive's size: more than the disks of most nodes hold for one workspace. It keeps one archive from
   * filling a store without other limits.
   */
  maxArchiveBytes: 1024 ** 4,
};

/** Counts transfers in progress, and refuses more of them than the limits allow. */
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

  /** Takes a slot and returns how to release it, once or more often. Throws RESOURCE_EXHAUSTED if none is free. */
  take(node: string): () => void {
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
