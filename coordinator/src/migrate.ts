import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "./config.ts";
import { connectStore, levelDir, type StorePlace } from "./open-cluster-store.ts";
import {
  type DurableStore,
  type EtcdStore,
  type EtcdStoreOptions,
  openEtcdStore,
  openLevelStore,
  restoreEtcdStore,
  restoreLevelStore,
  StoreError,
} from "./store/index.ts";
import type { Clock } from "./time/clock.ts";

/** The engines between which a store is moved. */
export type Engine = "etcd" | "disk";

export interface MigrateResult {
  readonly id: string;
  readonly epoch: number;
  readonly revision: number;
  readonly records: number;
  readonly movedTo: Engine;
}

/** A location of the store in one engine. */
interface Place<S extends DurableStore = DurableStore> {
  open(): Promise<S>;
  /** Restores a backup. @throws StoreError NOT_EMPTY if there is a store. */
  restore(file: string): Promise<unknown>;
  /** Closes the store, and renames or empties it, so that it can't be opened by mistake. */
  retire(store: S): Promise<void>;
}

/**
 * Moves the store to the other engine, into a new epoch. Verifies the store first, compares all
 * records afterwards, and retires the old location last. After an interruption, the same command
 * restarts the migration.
 */
export function migrate(to: Engine, place: StorePlace, clock: Clock): Promise<MigrateResult> {
  const { etcd: settings } = place.store;
  if (settings === undefined) {
    throw new ConfigError(
      "migrate: `store.etcd` must be set, for a store that moves to etcd or away from it",
    );
  }
  const disk = onDisk(place, clock);
  const etcd = inEtcd(async () => ({ ...(await connectStore(place, settings, clock)), ...AS_TASK }));
  const file = join(place.dataDir, "store-migration.backup");
  return to === "etcd" ? move(disk, etcd, to, file) : move(etcd, disk, to, file);
}

/** Options by which a task opens a store in etcd only if it exists and no coordinator uses it. */
export const AS_TASK = {
  create: "refuse",
  onStandby: ({ name }: { readonly name: string }): never => {
    throw new StoreError(
      "LOCKED",
      `the coordinator on ${name} works with the store: stop it. If it was cut off, wait ten seconds`,
    );
  },
} as const;

async function move<S extends DurableStore>(
  from: Place<S>,
  to: Place,
  movedTo: Engine,
  file: string,
): Promise<MigrateResult> {
  const source = await from.open();
  try {
    await source.verify();
    await removeBackup(file);
    const { records } = await source.backup(file);
    const left = await to.restore(file).then(() => undefined, asLeftovers);
    const copy = await to.open();
    const { id, epoch, revision } = copy;
    try {
      const differs = await findDifference(source, copy);
      if (differs !== undefined) throw left ?? new StoreError("CORRUPT", `the copy differs: ${differs}`);
      await copy.verify();
    } finally {
      await copy.close();
    }
    await from.retire(source);
    return { id, epoch, revision, records, movedTo };
  } finally {
    await source.close();
    await removeBackup(file);
  }
}

/**
 * Returns the error if the target is not empty, and throws other errors. The target may contain the
 * complete copy of an interrupted migration, which the comparison detects.
 */
function asLeftovers(error: unknown): StoreError {
  if (error instanceof StoreError && error.code === "NOT_EMPTY") return error;
  throw error;
}

async function findDifference(source: DurableStore, copy: DurableStore): Promise<string | undefined> {
  if (copy.id !== source.id) return `it is of the store ${copy.id}`;
  if (copy.epoch !== source.epoch + 1) return `it is of epoch ${copy.epoch}`;
  const [{ records: before }, { records: after }] = await Promise.all([source.range(""), copy.range("")]);
  if (before.length !== after.length) return `it has ${after.length} of ${before.length} records`;
  const at = before.findIndex((record, i) => !isDeepStrictEqual(plain(record), plain(after[i])));
  return at === -1 ? undefined : `the record ${JSON.stringify(before[at]?.key)} is another one`;
}

/**
 * Returns the bytes as one type, because a Buffer and a Uint8Array with the same content are not
 * deeply equal.
 */
function plain(record: { readonly value: Uint8Array } | undefined) {
  return record && { ...record, value: Buffer.from(record.value) };
}

function onDisk(place: StorePlace, clock: Clock): Place {
  const dir = levelDir(place);
  return {
    open: () => openLevelStore({ dir, clock, create: "refuse" }),
    restore: (file) => restoreLevelStore({ dir, file }),
    retire: async (store) => {
      await store.close();
      await rename(dir, freeName(`${dir}.moved-from-epoch-${store.epoch}`));
    },
  };
}

function inEtcd(connect: () => Promise<EtcdStoreOptions>): Place<EtcdStore> {
  return {
    open: async () => openEtcdStore(await connect()),
    restore: async (file) => restoreEtcdStore(await connect(), { file }),
    retire: async (store) => {
      await store.retire("the coordinator's disk");
      await store.close();
    },
  };
}

function freeName(path: string): string {
  for (let copy = 1; ; copy++) {
    const name = copy === 1 ? path : `${path}-${copy}`;
    if (!existsSync(name)) return name;
  }
}

async function removeBackup(file: string): Promise<void> {
  for (const path of [file, `${file}.partial`]) await rm(path, { force: true });
}
