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
  /** The store's id, created once and contained in backups. */
  readonly id: string;
  /**
   * The epoch, which grows by one with each restore or salvage, because the revisions after it belong to another history.
   */
  readonly epoch: number;
  /**
   * A random id of this history. Each restore or lossy salvage creates a new one; a snapshot of the files that is put back
   * keeps it. So if a node has seen a later revision of the same lineage, the store has been put back. Absent in a store of
   * an older version until its next opening.
   */
  readonly lineage?: string;
  /** The number of times that the store was opened. */
  readonly opens: number;
}

/**
 * The number and the sum of the records (`k/`) at one revision; the log (`l/`) holds everything after it. A mismatch shows
 * that records are missing, or that older versions have reappeared.
 */
export interface Base {
  readonly revision: Revision;
  readonly chain: Chain;
  readonly count: number;
  /** The sum of the records' seals, modulo 2^48. */
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
  return encodeFields(BASE_KEY, base);
}

export function decodeBase(value: Buffer): Base {
  const { revision, chain, count, sum } = decodeFields(BASE_KEY, value);
  if (typeof revision !== "number" || typeof chain !== "string") throw unreadable(BASE_KEY);
  if (typeof count !== "number" || typeof sum !== "number") throw unreadable(BASE_KEY);
  return { revision, chain, count, sum };
}

/** Computes a base, record by record. */
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

  /** Removes a record that was added before. */
  removeVersion(version: Version | undefined): void {
    if (version?.value !== undefined) this.remove(encodeRecord(version).crc);
  }
}

/** The modulus of the sum: far above any seal, and far below the largest exact integer. */
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
