import { randomUUID } from "node:crypto";
import { readBackup } from "../format/backup.ts";
import { CHAIN_START } from "../format/entry-codec.ts";
import { BASE_KEY, BaseTally, encodeBase, encodeStoreMeta, STORE_KEY } from "../format/meta-codec.ts";
import { encodeRecord } from "../format/record-codec.ts";
import { checkedEpoch, RESTORE_REVISION_GAP, type RestoreResult } from "../format/restored.ts";
import { StoreError } from "../store-error.ts";
import type { Etcd, EtcdOp } from "./etcd.ts";
import { encodeHead } from "./head-record.ts";
import { type Insistence, insist } from "./insist.ts";
import { ALL_KEYS, grouped, HEAD_KEY, LEADER_KEY, MOVED_KEY, putsOf, RESTORING_KEY } from "./layout.ts";
import { type Leadership, lost } from "./leadership.ts";

export interface WriteRestoredOptions {
  readonly etcd: Etcd;
  readonly calls: Insistence;
  /** Keeps every coordinator out until the end. */
  readonly leadership: Leadership;
  readonly file: string;
  /** See `RestoreOptions`. */
  readonly epoch?: number;
}

/**
 * Makes a store of a backup, once all of the backup was checked. The store keeps its id and enters a new epoch. A
 * restore that was cut off leaves a store that does not open, and that another restore replaces.
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
    { kind: "put", key: BASE_KEY, value: encodeBase({ revision, chain: CHAIN_START, count, sum }) },
    { kind: "put", key: HEAD_KEY, value: encodeHead(head) },
    { kind: "put", key: STORE_KEY, value: encodeStoreMeta(meta) },
    { kind: "delete", from: RESTORING_KEY },
  ]);
  return { backup: info, revision, epoch };
}

/** Marks the store as one that was moved: it isn't opened any more. */
export function markMoved(options: Omit<WriteRestoredOptions, "file">, to: string): Promise<void> {
  return write(options, [{ kind: "put", key: MOVED_KEY, value: Buffer.from(to) }]);
}

/** Removes what a restore that was cut off, or a store that was moved, has left. */
async function makeRoom(options: WriteRestoredOptions): Promise<void> {
  const { etcd, calls } = options;
  const marks = await Promise.all(
    [RESTORING_KEY, MOVED_KEY].map((from) => insist(() => etcd.range({ from }), calls)),
  );
  const isOver = marks.some(({ records }) => records.length > 0);
  const { records } = await insist(() => etcd.range({ ...ALL_KEYS, limit: 2 }), calls);
  if (!isOver && records.some(({ key }) => key !== LEADER_KEY)) {
    throw new StoreError("NOT_EMPTY", "there is a store in etcd: a backup is restored under an empty prefix");
  }
  // The leader's own key stays.
  await write(options, [
    { kind: "delete", from: ALL_KEYS.from, to: LEADER_KEY },
    { kind: "delete", from: `${LEADER_KEY}\0`, to: RESTORING_KEY },
    { kind: "put", key: RESTORING_KEY, value: Buffer.alloc(0) },
    { kind: "delete", from: `${RESTORING_KEY}\0`, to: ALL_KEYS.to },
  ]);
}

async function write(
  { etcd, calls, leadership }: Omit<WriteRestoredOptions, "file">,
  ops: readonly EtcdOp[],
): Promise<void> {
  const leads = { kind: "createRevision", key: LEADER_KEY, revision: leadership.createRevision } as const;
  const result = await insist(() => etcd.txn({ compares: [leads], ops, otherwise: [LEADER_KEY] }), calls);
  if (!result.succeeded) throw lost(result.found[0]);
}
