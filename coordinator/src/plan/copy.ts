import { PREFIXES } from "../model/keys.ts";
import type { Store, StoredRecord } from "../store/index.ts";
import { TXN_BYTES_MAX, TXN_OPS_MAX } from "../store/limits.ts";

/**
 * The prefixes of records on which decisions of controllers depend. Past rollouts, tokens, contents
 * of objects and events are omitted.
 */
const COPIED = [
  PREFIXES.nodes,
  PREFIXES.reports,
  PREFIXES.resources,
  PREFIXES.podTemplates,
  PREFIXES.pods,
  PREFIXES.statuses,
  PREFIXES.objects,
  PREFIXES.revisions,
  PREFIXES.workloadStatuses,
  PREFIXES.scales,
  PREFIXES.serviceAddresses,
] as const;

/** The number of records in one read. */
const PAGE_SIZE = 500;
const RESERVED_BYTES = 4096;

/** Copies one revision of the store in parts. `pause` lets other work run in between. */
export async function copyStore(from: Store, to: Store, pause: () => Promise<void>): Promise<void> {
  const at = from.revision;
  for (const prefix of COPIED) {
    for (let after: string | undefined, more = true; more; ) {
      const page = await from.range(prefix, { at, limit: PAGE_SIZE, ...(after !== undefined && { after }) });
      for (const part of parts(page.records)) {
        await to.txn(
          [],
          part.map(({ key, value }) => ({ type: "put", key, value })),
        );
      }
      after = page.records.at(-1)?.key;
      more = page.more;
      await pause();
    }
  }
}

/** Yields the records in parts that fit into one transaction. */
function* parts(records: readonly StoredRecord[]): Generator<readonly StoredRecord[]> {
  let part: StoredRecord[] = [];
  let bytes = 0;
  for (const record of records) {
    const size = record.value.byteLength + Buffer.byteLength(record.key);
    if (part.length === TXN_OPS_MAX || bytes + size > TXN_BYTES_MAX - RESERVED_BYTES) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(record);
    bytes += size;
  }
  if (part.length > 0) yield part;
}
