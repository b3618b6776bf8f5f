import { randomUUID } from "node:crypto";
import { readBackup } from "../format/backup.ts";
import { CHAIN_START } from "../format/entry-codec.ts";
import { BASE_KEY, BaseTally, encodeBase, encodeStoreMeta, STORE_KEY } from "../format/meta-codec.ts";
import { encodeRecord } from "../format/record-codec.ts";
import { checkedEpoch, RESTORE_REVISION_GAP, type RestoreResult } from "../format/restored.ts";
import { StoreError } from "../store-error.ts";
import type { Etcd, EtcdOp } from "./etcd.ts";
import { encodeHead } from "./head-record.ts";
import { type RetryTiming, retryUntilAnswered } from "./insist.ts";
import { ALL_KEYS, grouped, HEAD_KEY, LEADER_KEY, MOVED_KEY, putsOf, RESTORING_KEY } from "./layout.ts";
import { type Leadership, lost } from "./leadership.ts";

export interface WriteRestoredOptions {
  readonly etcd: Etcd;
  readonly calls: RetryTiming;
  /** The leadership, which keeps other coordinators out until the end. */
  readonly leadership: Leadership;
  readonly file: string;
  /** The new epoch, see `RestoreOptions`. */
  readonly epoch?: number;
}

/**
 * Creates a store from a backup, after the whole backup was checked. The store keeps its id and gets a new epoch. An
 * interrupted restore leaves a store that can't be opened, and that another restore replaces.
 */
export async function writeRestored(options: WriteRestoredOptions): Promise<RestoreResult> {
  const { info, records } = await readBackup(options.file);
  const epoch = checkedEpoch(info, options.epoch);
  await makeRoom(options);
  const tally = new BaseTally();
  const puts = function* (): Generator<EtcdOp> {
    for (const version of records) {
      const { dbKey, value, crc } = encodeRecord(version);
      tally.add(crc);
      yield* putsOf(dbKey, value);
    }
  };
  for (const group of grouped(puts())) await write(options, group);
  const revision = info.revision + RESTORE_REVISION_GAP;
  const { count, sum } = tally;
  const head = { store: info.store, revision, chain: CHAIN_START, opening: randomUUID() };
  const meta = { id: info.store, epoch, opens: 0, lineage: randomUUID() };
  await write(options, [
    { type: "put", key: BASE_KEY, value: encodeBase({ revision, chain: CHAIN_START, count, sum }) },
    { type: "put", key: HEAD_KEY, value: encodeHead(head) },
    { type: "put", key: STORE_KEY, value: encodeStoreMeta(meta) },
    { type: "delete", from: RESTORING_KEY },
  ]);
  return { backup: info, revision, epoch };
}

/** Marks the store as moved, so that it can't be opened any more. */
export function markMoved(options: Omit<WriteRestoredOptions, "file">, to: string): Promise<void> {
  return write(options, [{ type: "put", key: MOVED_KEY, value: Buffer.from(to) }]);
}

/** Removes what an interrupted restore or a moved store has left. */
async function makeRoom(options: WriteRestoredOptions): Promise<void> {
  const { etcd, calls } = options;
  const marks = await Promise.all(
    [RESTORING_KEY, MOVED_KEY].map((from) => retryUntilAnswered(() => etcd.range({ from }), calls)),
  );
  const isOver = marks.some(({ records }) => records.length > 0);
  const { records } = await retryUntilAnswered(() => etcd.range({ ...ALL_KEYS, limit: 2 }), calls);
  if (!isOver && records.some(({ key }) => key !== LEADER_KEY)) {
    throw new StoreError("NOT_EMPTY", "there is a store in etcd: a backup is restored under an empty prefix");
  }
  // Keeps the leader's key.
  await write(options, [
    { type: "delete", from: ALL_KEYS.from, to: LEADER_KEY },
    { type: "delete", from: `${LEADER_KEY}\0`, to: RESTORING_KEY },
    { type: "put", key: RESTORING_KEY, value: Buffer.alloc(0) },
    { type: "delete", from: `${RESTORING_KEY}\0`, to: ALL_KEYS.to },
  ]);
}

async function write(
  { etcd, calls, leadership }: Omit<WriteRestoredOptions, "file">,
  ops: readonly EtcdOp[],
): Promise<void> {
  const leads = { type: "create-revision", key: LEADER_KEY, revision: leadership.createRevision } as const;
  const result = await retryUntilAnswered(
    () => etcd.txn({ compares: [leads], ops, otherwise: [LEADER_KEY] }),
    calls,
  );
  if (!result.succeeded) throw lost(result.found[0]);
}
