import type { Version } from "../core/timeline.ts";
import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Chain } from "./entry-codec.ts";
import { encodeRecord } from "./record-codec.ts";
import { describe, SEAL_BYTES, seal, unseal } from "./sealed.ts";

export const STORE_KEY = "m/store";
export const BASE_KEY = "m/base";

/** The store's identity and format. */
export interface StoreMeta {
  /** The store's id. Created once and kept in backups. */
  readonly id: string;
  /** One more with each restore or salvage: what happened after is another history. */
  readonly epoch: number;
  /**
   * Random, new with each restore or lossy salvage: a snapshot of the files that is put back keeps it, so that a node
   * which has seen a later revision of the same lineage proves that the store went back. Absent in a store that an
   * older version wrote; the next opening adds it.
   */
  readonly lineage?: string;
  /** The number of times that the store was opened. */
  readonly opens: number;
}

/**
 * The count and the sum of the records (`k/`). They are the state as of this revision, and the log (`l/`) holds everything after
 * it. A mismatch shows that records have vanished or that older ones have reappeared.
 */
export interface Base {
  readonly revision: Revision;
  readonly chain: Chain;
  readonly count: number;
  /** Sum of the records' seals, modulo 2^48. */
  readonly sum: number;
}

export function encodeStoreMeta(meta: StoreMeta): Buffer {
  return encodeFields(STORE_KEY, meta);
}

export function decodeStoreMeta(value: Buffer): StoreMeta {
  const { id, epoch, opens, lineage } = decodeFields(STORE_KEY, value);
  if (typeof id !== "string" || typeof epoch !== "number" || typeof opens !== "number")
    throw unreadable(STORE_KEY);
  return { id, epoch, opens, ...(typeof lineage === "string" && { lineage }) };
}

export function encodeBase(base: Base): Buffer {
  return encodeFields(BASE_KEY, { ...base, chain: base.chain.toString("hex") });
}

export function decodeBase(value: Buffer): Base {
  const { revision, chain, count, sum } = decodeFields(BASE_KEY, value);
  if (typeof revision !== "number" || typeof chain !== "string") throw unreadable(BASE_KEY);
  if (typeof count !== "number" || typeof sum !== "number") throw unreadable(BASE_KEY);
  return { revision, chain: Buffer.from(chain, "hex"), count, sum };
}

/** Counts a base together, record by record. */
export class BaseTally {
  #count: number;
  #sum: number;

  constructor(from: { readonly count: number; readonly sum: number } = { count: 0, sum: 0 }) {
    this.#count = from.count;
    this.#sum = from.sum;
  }

  get count(): number {
    return this.#count;
  }

  get sum(): number {
    return this.#sum;
  }

  add(crc: number): void {
    this.#count++;
    this.#sum = (this.#sum + crc) % SUM_MODULUS;
  }

  remove(crc: number): void {
    this.#count--;
    this.#sum = (this.#sum - crc + SUM_MODULUS) % SUM_MODULUS;
  }

  /** Takes out a record that was counted before. */
  removeVersion(version: Version | undefined): void {
    if (version?.value !== undefined) this.remove(encodeRecord(version).crc);
  }
}

/** Far above any seal, far below what a number holds exactly. */
const SUM_MODULUS = 2 ** 48;

export function encodeFields(dbKey: string, fields: object): Buffer {
  const json = Buffer.from(JSON.stringify(fields));
  const value = Buffer.concat([json, Buffer.alloc(SEAL_BYTES)]);
  seal(dbKey, value);
  return value;
}

export function decodeFields(dbKey: string, value: Buffer): Record<string, unknown> {
  const fields: unknown = JSON.parse(unseal(dbKey, value).toString("utf8"));
  if (typeof fields !== "object" || fields === null) throw unreadable(dbKey);
  return { ...fields };
}

export function unreadable(dbKey: string): StoreError {
  return new StoreError("CORRUPT", `${describe(dbKey)} has an unknown layout, a newer version wrote it`);
}
