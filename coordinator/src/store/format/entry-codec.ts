import { hash } from "node:crypto";
import type { Commit, Version } from "../core/timeline.ts";
import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { ByteReader, ByteWriter, SIZES } from "./byte-cursor.ts";
import { toLease } from "./record-codec.ts";
import { describe, SEAL_BYTES, seal, unseal } from "./sealed.ts";

/** The first byte of every log entry, which names its layout. */
const FORMAT = 1;
const DELETED = 0;
const PUT = 1;

/**
 * The SHA-256 of a log entry in 64 hexadecimal digits. It covers the chain of the entry before, and so the whole history.
 */
export type Chain = string;

export const CHAIN_BYTES = 32;

/** The chain of an empty store. */
export const CHAIN_START: Chain = "00".repeat(CHAIN_BYTES);

export interface EncodedEntry {
  readonly dbKey: string;
  readonly value: Buffer;
  readonly chain: Chain;
}

export interface DecodedEntry {
  readonly revision: Revision;
  readonly previous: Chain;
  readonly chain: Chain;
  readonly changes: readonly Version[];
}

/** Returns the database key of the entry. It is zero-padded, so that LevelDB sorts entries by revision. */
export function entryKey(revision: Revision): string {
  return `l/${String(revision).padStart(16, "0")}`;
}

/** Encodes an entry: format, revision, chain of the entry before, number of changes, changes, seal. */
export function encodeEntry(commit: Commit, previous: Chain): EncodedEntry {
  const dbKey = entryKey(commit.revision);
  let size = HEADER_BYTES + SEAL_BYTES;
  for (const change of commit.changes) size += changeSize(change);
  const writer = new ByteWriter(size);
  writer
    .uint8(FORMAT)
    .number(commit.revision)
    .raw(Buffer.from(previous, "hex"))
    .uint32(commit.changes.length);
  for (const change of commit.changes) writeChange(writer, change);
  seal(dbKey, writer.bytes);
  return { dbKey, value: writer.bytes, chain: chainOf(writer.bytes) };
}

/** Decodes an entry. Throws CORRUPT, naming the revision, if it differs from what was written. */
export function decodeEntry(dbKey: string, sealed: Buffer): DecodedEntry {
  const reader = new ByteReader(unseal(dbKey, sealed));
  const format = reader.uint8();
  if (format !== FORMAT) {
    throw new StoreError(
      "CORRUPT",
      `${describe(dbKey)}: format ${format} is unknown, a newer version wrote it`,
    );
  }
  const revision = reader.number();
  const previous = reader.raw(CHAIN_BYTES).toString("hex");
  const changes = Array.from({ length: reader.uint32() }, () => readChange(reader, revision));
  return { revision, previous, chain: chainOf(sealed), changes };
}

const HEADER_BYTES = SIZES.uint8 + SIZES.number + CHAIN_BYTES + SIZES.uint32;

function chainOf(entry: Buffer): Chain {
  return hash("sha256", entry);
}

function changeSize(change: Version): number {
  const both = SIZES.uint8 + SIZES.uint32 + Buffer.byteLength(change.key);
  if (change.value === undefined) return both;
  return (
    both + 2 * SIZES.number + SIZES.uint8 + (change.lease?.length ?? 0) + SIZES.uint32 + change.value.length
  );
}

function writeChange(writer: ByteWriter, change: Version): void {
  writer
    .uint8(change.value === undefined ? DELETED : PUT)
    .uint32(Buffer.byteLength(change.key))
    .text(change.key);
  if (change.value === undefined) return;
  const lease = change.lease ?? "";
  writer.number(change.createRevision).number(change.version).uint8(lease.length).text(lease);
  writer.uint32(change.value.length).packed(change.value);
}

function readChange(reader: ByteReader, revision: Revision): Version {
  const kind = reader.uint8();
  const key = reader.text(reader.uint32());
  if (kind === DELETED) {
    return {
      key,
      value: undefined,
      createRevision: 0,
      modRevision: revision,
      version: 0,
      lease: undefined,
      older: undefined,
    };
  }
  return {
    key,
    createRevision: reader.number(),
    modRevision: revision,
    version: reader.number(),
    lease: toLease(reader.text(reader.uint8())),
    value: reader.packed(reader.uint32()),
    older: undefined,
  };
}
