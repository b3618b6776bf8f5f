import { messageOf } from "@forage/common/message-of";
import { ClassicLevel } from "classic-level";
import { Level } from "level";
import { corrupt } from "../format/corrupt.ts";
import { StoreError } from "../store-error.ts";

/** The LevelDB database. Keys are texts, values are sealed bytes. */
export type Database = Level<string, Buffer>;

export type DatabaseSnapshot = ReturnType<Database["snapshot"]>;

/** The number of bytes of values read in one step: some thousand records, a few milliseconds. */
const READ_AHEAD_BYTES = 1024 * 1024;
const READ_AHEAD_RECORDS = 1000;

/**
 * The options of LevelDB. Without compression, a flipped byte damages one record, which its seal detects, and not a block
 * of unknown records. The cache is small, because nothing is read after the opening.
 */
const OPTIONS = {
  keyEncoding: "utf8",
  valueEncoding: "buffer",
  compression: false,
  cacheSize: 1024 * 1024,
} as const;

/** Opens the database. Throws LOCKED, NO_SPACE or, if LevelDB can't read its files, CORRUPT. */
export async function openDatabase(dir: string): Promise<Database> {
  const db = new Level<string, Buffer>(dir, OPTIONS);
  try {
    await db.open();
  } catch (error) {
    throw toOpenError(error);
  }
  return db;
}

/** Rebuilds LevelDB's own files from the intact ones. Keeps the records that LevelDB can still read. */
export async function repairDatabase(dir: string): Promise<void> {
  await ClassicLevel.repair(dir);
}

/** Yields all records by key. Throws CORRUPT if LevelDB finds a block that it can't read. */
export async function* readDatabase(
  db: Database,
  snapshot?: DatabaseSnapshot,
): AsyncGenerator<[string, Buffer][]> {
  const iterator = db.iterator({ highWaterMarkBytes: READ_AHEAD_BYTES, ...(snapshot && { snapshot }) });
  try {
    for (;;) {
      const pairs = await iterator.nextv(READ_AHEAD_RECORDS);
      if (pairs.length === 0) return;
      yield pairs;
    }
  } catch (error) {
    throw toReadError(error);
  } finally {
    await iterator.close();
  }
}

export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return messageOf(cause);
}

function toReadError(cause: unknown): StoreError {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "LEVEL_ITERATOR_NOT_OPEN" || code === "LEVEL_DATABASE_NOT_OPEN") {
    return new StoreError("CLOSED", "the store was closed while it was read", { cause });
  }
  return new StoreError("CORRUPT", `the database can't be read to its end: ${reasonOf(cause)}`, { cause });
}

function toOpenError(error: unknown): StoreError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined;
  const code = cause !== undefined && "code" in cause ? cause.code : undefined;
  const reason = reasonOf(error);
  if (code === "LEVEL_LOCKED")
    return new StoreError("LOCKED", "another process has the store open", { cause: error });
  if (reason.includes("No space left")) {
    return new StoreError("NO_SPACE", "the disk is full, and opening needs some space: free some", {
      cause: error,
    });
  }
  return corrupt([`the database does not open: ${reason}`], undefined, error);
}
