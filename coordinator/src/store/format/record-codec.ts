import type { Version } from "../core/timeline.ts";
import { packBytes } from "../packed-bytes.ts";
import type { LeaseId } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { ByteReader, ByteWriter, SIZES } from "./byte-cursor.ts";
import { describe, SEAL_BYTES, seal, unseal } from "./sealed.ts";

/** The first byte of every record, which names its layout. */
const FORMAT = 1;

export interface EncodedRecord {
  readonly dbKey: string;
  readonly value: Buffer;
  readonly crc: number;
}

export function recordKey(key: string): string {
  return `k/${key}`;
}

/** Encodes a record: format, createRevision, modRevision, version, length of the lease id, lease id, value, seal. */
export function encodeRecord(version: Version): EncodedRecord {
  const dbKey = recordKey(version.key);
  const lease = version.lease ?? "";
  const value = version.value ?? NOTHING;
  const size = SIZES.uint8 + 3 * SIZES.number + SIZES.uint8 + lease.length + value.length + SEAL_BYTES;
  const { bytes } = new ByteWriter(size)
    .uint8(FORMAT)
    .number(version.createRevision)
    .number(version.modRevision)
    .number(version.version)
    .uint8(lease.length)
    .text(lease)
    .packed(value);
  return { dbKey, value: bytes, crc: seal(dbKey, bytes) };
}

/** Decodes a record. Throws CORRUPT, naming the record, if it differs from what was written. */
export function decodeRecord(dbKey: string, sealed: Buffer): Version {
  const reader = new ByteReader(unseal(dbKey, sealed));
  const format = reader.uint8();
  if (format !== FORMAT) {
    throw new StoreError(
      "CORRUPT",
      `${describe(dbKey)}: format ${format} is unknown, a newer version wrote it`,
    );
  }
  return {
    key: dbKey.slice(recordKey("").length),
    createRevision: reader.number(),
    modRevision: reader.number(),
    version: reader.number(),
    lease: toLease(reader.text(reader.uint8())),
    value: reader.packed(reader.rest),
    older: undefined,
  };
}

export function toLease(id: string): LeaseId | undefined {
  return id === "" ? undefined : (id as LeaseId);
}

const NOTHING = packBytes(new Uint8Array());
