import type { Version } from "../core/timeline.ts";
import { CHAIN_START } from "../format/entry-codec.ts";
import {
  BASE_KEY,
  BaseTally,
  encodeBase,
  encodeStoreMeta,
  STORE_KEY,
  type StoreMeta,
} from "../format/meta-codec.ts";
import { encodeRecord } from "../format/record-codec.ts";
import type { Revision } from "../store.ts";
import type { Disk } from "./disk.ts";

/** The size of a batch of records, which is that of LevelDB's write buffer. */
const BATCH_BYTES = 4 * 1024 * 1024;

/**
 * Creates a database in an empty directory, with the records at the revision and no history. It writes the store's identity
 * last, so that a database whose creation was interrupted can't be opened.
 */
export async function writeDatabase(
  disk: Disk,
  dir: string,
  meta: StoreMeta,
  revision: Revision,
  records: readonly Version[],
): Promise<void> {
  const db = await disk.openDatabase(dir);
  try {
    const tally = new BaseTally();
    let batch = db.batch();
    let bytes = 0;
    for (const version of records) {
      const record = encodeRecord(version);
      tally.add(record.crc);
      batch.put(record.dbKey, record.value);
      bytes += record.value.length;
      if (bytes < BATCH_BYTES) continue;
      await batch.write({ sync: true });
      batch = db.batch();
      bytes = 0;
    }
    const base = { revision, chain: CHAIN_START, count: tally.count, sum: tally.sum };
    batch.put(BASE_KEY, encodeBase(base)).put(STORE_KEY, encodeStoreMeta(meta));
    await batch.write({ sync: true });
  } finally {
    await db.close();
  }
}
