import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "@forage/common/message-of";
import type { Version } from "../core/timeline.ts";
import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { ByteWriter, SIZES } from "./byte-cursor.ts";
import { DigestReader } from "./digest-reader.ts";
import { decodeRecord, encodeRecord } from "./record-codec.ts";

export interface BackupInfo {
  /** The id of the store from which the backup was made. */
  readonly store: string;
  readonly epoch: number;
  /** The revision of the records. */
  readonly revision: Revision;
  readonly records: number;
  /** The digest of the whole file except the last line, which contains it. */
  readonly sha256: string;
}

/**
 * The first line of a backup, which names the format. The second line is JSON (store, epoch, revision, records). The
 * records follow: the lengths of key and value, then both as in the database, sealed. The last line is the SHA-256 of
 * everything before it.
 */
const MAGIC = "FORAGE STORE BACKUP 1\n";

/** The size at which collected records are written. Larger pieces would stay in the C library's heap after a backup. */
const WRITE_BYTES = 64 * 1024;

/** The limit of a line, which is JSON with four short fields. */
const LINE_BYTES_MAX = 1024;

/** The limit of a record, far above that of a transaction. A longer record is damaged. */
const RECORD_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Writes a temporary file and renames it, so that the backup is complete or absent.
 * @throws StoreError NOT_EMPTY if the file exists.
 */
export async function writeBackup(
  file: string,
  of: Pick<BackupInfo, "store" | "epoch" | "revision">,
  records: readonly Version[],
): Promise<BackupInfo> {
  const partial = `${file}.partial`;
  if (existsSync(file))
    throw new StoreError("NOT_EMPTY", `the backup ${file} exists already: give another name`);
  const handle = await open(partial, "wx", 0o600).catch((cause: unknown) => {
    const exists = cause instanceof Error && "code" in cause && cause.code === "EEXIST";
    const advice = exists
      ? ": if no other backup is being written, remove this file of an interrupted backup"
      : "";
    throw new StoreError("IO_ERROR", `the backup can't be written to ${partial}${advice}`, { cause });
  });
  try {
    const hash = createHash("sha256");
    const header = { ...of, records: records.length };
    for (const chunk of layOut(header, records)) {
      hash.update(chunk);
      await handle.writeFile(chunk);
    }
    const sha256 = hash.digest("hex");
    await handle.writeFile(`${sha256}\n`);
    await handle.sync();
    await rename(partial, file);
    await syncDirectory(dirname(file));
    return { ...header, sha256 };
  } catch (error) {
    await rm(partial, { force: true });
    throw StoreError.from(error);
  } finally {
    await handle.close();
  }
}

/** Reads a backup and checks all of it. @throws StoreError CORRUPT if the content differs from what was written. */
export async function readBackup(
  file: string,
): Promise<{ readonly info: BackupInfo; readonly records: readonly Version[] }> {
  const records: Version[] = [];
  const info = await scan(file, (record) => records.push(record));
  return { info, records };
}

/** Checks a backup as `readBackup` does, but keeps none of its records in memory. @throws StoreError CORRUPT */
export function checkBackup(file: string): Promise<BackupInfo> {
  return scan(file, () => {});
}

async function scan(file: string, visit: (record: Version) => void): Promise<BackupInfo> {
  const handle = await open(file, "r").catch((cause: unknown) => {
    throw new StoreError("IO_ERROR", `can't read the backup ${file}`, { cause });
  });
  try {
    const reader = new DigestReader(handle);
    if ((await reader.line(LINE_BYTES_MAX)) !== MAGIC)
      throw new Error("it is not a backup, or of a newer version");
    const header = parseHeader(await reader.line(LINE_BYTES_MAX));
    for (let i = 0; i < header.records; i++) {
      const lengths = await reader.exactly(2 * SIZES.uint32);
      const dbKey = await reader.exactly(Math.min(RECORD_BYTES_MAX, lengths.readUInt32LE(0)));
      const value = await reader.exactly(Math.min(RECORD_BYTES_MAX, lengths.readUInt32LE(SIZES.uint32)));
      visit(decodeRecord(dbKey.toString("utf8"), value));
    }
    const sha256 = reader.digest();
    if ((await reader.line(LINE_BYTES_MAX)) !== `${sha256}\n`) throw new Error("its SHA-256 does not match");
    if (!(await reader.atEnd())) throw new Error("data follows its end");
    return { ...header, sha256 };
  } catch (cause) {
    const reason = messageOf(cause);
    throw new StoreError("CORRUPT", `the backup ${file} is damaged: ${reason}`, { cause });
  } finally {
    await handle.close();
  }
}

/** Makes the entries of a directory durable. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

type Header = Omit<BackupInfo, "sha256">;

function* layOut(header: Header, records: readonly Version[]): Generator<Buffer> {
  let parts: Buffer[] = [Buffer.from(MAGIC), Buffer.from(`${JSON.stringify(header)}\n`)];
  let bytes = 0;
  for (const record of records) {
    const { dbKey, value } = encodeRecord(record);
    const key = Buffer.from(dbKey);
    const { bytes: lengths } = new ByteWriter(2 * SIZES.uint32).uint32(key.length).uint32(value.length);
    parts.push(lengths, key, value);
    bytes += lengths.length + key.length + value.length;
    if (bytes < WRITE_BYTES) continue;
    yield Buffer.concat(parts);
    parts = [];
    bytes = 0;
  }
  yield Buffer.concat(parts);
}

function parseHeader(line: string): Header {
  const fields: unknown = JSON.parse(line);
  const { store, epoch, revision, records }: Record<string, unknown> = { ...(fields as object) };
  if (typeof store !== "string" || typeof epoch !== "number") throw new Error("its second line is invalid");
  if (typeof revision !== "number" || typeof records !== "number")
    throw new Error("its second line has no numbers");
  return { store, epoch, revision, records };
}
