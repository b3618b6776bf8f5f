import { StoreError } from "../store-error.ts";
import { crc32c } from "./crc32c.ts";

/** The size of a seal. Every value in the database ends with a CRC-32C of its key and all bytes before it. */
export const SEAL_BYTES = 4;

/** Writes the seal into the last four bytes of the value. Returns it. */
export function seal(dbKey: string, value: Buffer): number {
  const end = value.length - SEAL_BYTES;
  const crc = checksum(dbKey, value.subarray(0, end));
  value.writeUInt32LE(crc, end);
  return crc;
}

/** Returns the value without its seal. Throws CORRUPT, naming the record, if the value or its key has changed. */
export function unseal(dbKey: string, value: Buffer): Buffer {
  const end = value.length - SEAL_BYTES;
  const stored = end < 0 ? undefined : value.readUInt32LE(end);
  const computed = end < 0 ? undefined : checksum(dbKey, value.subarray(0, end));
  if (stored === undefined || stored !== computed) {
    throw new StoreError(
      "CORRUPT",
      `${describe(dbKey)}: its checksum does not match (${value.length} bytes)`,
    );
  }
  return value.subarray(0, end);
}

/** Returns the stored seal. */
export function sealOf(value: Buffer): number {
  return value.readUInt32LE(value.length - SEAL_BYTES);
}

/** Describes a database key for operators, such as `record "pods/a"` or `log entry of revision 12`. */
export function describe(dbKey: string): string {
  const name = dbKey.slice(2);
  if (dbKey.startsWith("k/")) return `record ${JSON.stringify(name)}`;
  if (dbKey.startsWith("l/")) return `log entry of revision ${Number(name)}`;
  if (dbKey.startsWith("m/")) return `description ${JSON.stringify(name)}`;
  return `unknown entry ${JSON.stringify(dbKey)}`;
}

function checksum(dbKey: string, body: Buffer): number {
  return crc32c(body, crc32c(Buffer.from(dbKey)));
}
