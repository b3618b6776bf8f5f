import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { lockDirectory } from "@forage/identity/directory-lock";
import { ConfigError } from "../config.ts";
import { CoordinatorError } from "../errors.ts";
import { giveStoreToOwner } from "../give-to-owner.ts";
import { levelDir, type StorePlace } from "../open-cluster-store.ts";
import {
  type BackupInfo,
  checkBackup,
  openLevelStore,
  type RestoreResult,
  restoreLevelStore,
  StoreError,
} from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { type DirectoryMoves, diskMoves, moveDirectory } from "./move-directories.ts";
import type { ServiceUnit } from "./service-unit.ts";

export interface ReplaceStoreOptions {
  readonly place: StorePlace;
  /** The path of the backup. */
  readonly file: string;
  /** The new epoch. Default: the one after the epochs of the backup and of the present store. */
  readonly epoch?: number | undefined;
  /** The coordinator's systemd unit; undefined if the operator starts and stops it. */
  readonly unit: ServiceUnit | undefined;
  readonly clock: Clock;
  /** Returns the revision of the running coordinator's store; undefined if it does not answer. */
  readonly servedRevision: () => Promise<number | undefined>;
  /** Asks the operator. Returns whether the operator agrees. */
  readonly ask: (question: string) => Promise<boolean>;
  readonly report: (line: string) => void;
  /** Renames directories. Default: on the disk. */
  readonly moves?: DirectoryMoves;
}

export interface ReplaceResult extends RestoreResult {
  /** The directory that keeps the former store; undefined if there was none. */
  readonly replaced: string | undefined;
  /** Whether the coordinator was started and became ready. */
  readonly started: boolean;
}

/** The present store, as far as it can be read. */
interface Present {
  readonly dir: string;
  /** The identity of the store; undefined if it can't be opened. */
  readonly opened: { readonly id: string; readonly epoch: number; readonly revision: number } | undefined;
}

const RESTORED = "store.restored";
const REPLACED = "store.replaced-";
const FAILED = "store.failed-";

/**
 * Replaces the coordinator's store by a backup: verifies the backup, stops the coordinator,
 * restores beside the present store, exchanges both, and starts the coordinator. The former store
 * is kept. If the coordinator does not become ready, the former store is put back.
 */
export async function replaceStore(options: ReplaceStoreOptions): Promise<ReplaceResult> {
  const { place, file } = options;
  if (place.store.etcd !== undefined)
    throw new ConfigError(
      "restore --replace: the store is in etcd: stop all coordinators and restore under another prefix",
    );
  const lock = await lockDirectory(place.dataDir);
  if (lock === undefined)
    throw new StoreError("LOCKED", `another restore into ${place.dataDir} is in progress`);
  try {
    const info = await checkBackup(file);
    const unit = (await options.unit?.state()) === "stopped" ? undefined : options.unit;
    if (unit !== undefined) await assertUses(unit, place);
    if (!(await options.ask(await questionOf(info, unit !== undefined, options))))
      throw new CoordinatorError("ABORTED", "nothing was changed");
    if (unit === undefined) return { ...(await exchange(options, info)), started: false };
    return await whileStopped(unit, options, info);
  } finally {
    lock.release();
  }
}

/** Throws if the unit runs a coordinator with another store. */
async function assertUses(unit: ServiceUnit, place: StorePlace): Promise<void> {
  const dir = levelDir(place);
  if ((await unit.state()) !== "running" || !existsSync(dir)) return;
  const lock = await lockDirectory(dir);
  lock?.release();
  if (lock !== undefined)
    throw new ConfigError(
      `${unit.name} runs, and does not use the store in ${dir}: name the unit of the coordinator that uses it with --unit`,
    );
}

async function questionOf(
  info: BackupInfo,
  isRunning: boolean,
  options: ReplaceStoreOptions,
): Promise<string> {
  const { place, file } = options;
  const served = isRunning ? await options.servedRevision() : undefined;
  const present = served === undefined ? "" : `, and the present store is at revision ${served}`;
  const stop = isRunning ? "The coordinator is stopped meanwhile; containers keep running. " : "";
  return (
    `${file} has ${info.records} records at revision ${info.revision}${present}. ${stop}What was changed after the backup is lost, and ` +
    `agents stop pods that it doesn't contain. Replace the store in ${levelDir(place)}?`
  );
}

async function whileStopped(
  unit: ServiceUnit,
  options: ReplaceStoreOptions,
  info: BackupInfo,
): Promise<ReplaceResult> {
  const { report } = options;
  report("stopping the coordinator");
  await unit.stop();
  let exchanged: Omit<ReplaceResult, "started">;
  try {
    exchanged = await exchange(options, info);
  } catch (error) {
    report("the store was not replaced; starting the coordinator again");
    await unit.start().catch((failure: unknown) => report(`it does not become ready: ${messageOf(failure)}`));
    throw error;
  }
  report("starting the coordinator");
  try {
    await unit.start();
  } catch (cause) {
    throw await putBack(unit, options, exchanged, cause);
  }
  return { ...exchanged, started: true };
}

/** Restores beside the present store, and exchanges both. */
async function exchange(
  options: ReplaceStoreOptions,
  info: BackupInfo,
): Promise<Omit<ReplaceResult, "started">> {
  const { place, file, report, clock, moves = diskMoves } = options;
  const { dataDir } = place;
  const present = await readPresent(options);
  if (present?.opened !== undefined && present.opened.id !== info.store)
    throw new StoreError(
      "INVALID_ARGUMENT",
      `${file} is of another cluster: its store is ${info.store}, and ${present.dir} has ${present.opened.id}`,
    );
  const restored = join(dataDir, RESTORED);
  await rm(restored, { recursive: true, force: true });
  const epoch = options.epoch ?? Math.max(info.epoch, present?.opened?.epoch ?? 0) + 1;
  const result = await restoreLevelStore({ dir: restored, file, epoch });
  const dir = levelDir(place);
  const isInPlace = present?.dir === dir;
  const replaced = isInPlace ? join(dataDir, `${REPLACED}${stampOf(clock)}`) : present?.dir;
  if (isInPlace && replaced !== undefined) await swap(dir, replaced, restored, moves);
  else await moveDirectory(restored, dir, moves);
  await giveStoreToOwner(dataDir);
  report(
    replaced === undefined ? `restored into ${dir}` : `restored; the former store is kept in ${replaced}`,
  );
  return { ...result, replaced };
}

/**
 * Exchanges the directories. A crash between the renames leaves no store; the next replacement then
 * finds the former one under its new name.
 */
async function swap(dir: string, replaced: string, restored: string, moves: DirectoryMoves): Promise<void> {
  await moveDirectory(dir, replaced, moves);
  try {
    await moveDirectory(restored, dir, moves);
  } catch (error) {
    // If only the sync has failed, the restored store is already in place.
    if (!existsSync(dir)) await moveDirectory(replaced, dir, moves);
    throw error;
  }
}

async function readPresent({ place, clock, report }: ReplaceStoreOptions): Promise<Present | undefined> {
  const dir = await presentDir(place);
  if (dir === undefined) return undefined;
  try {
    const store = await openLevelStore({ dir, clock, create: "refuse" });
    const { id, epoch, revision } = store;
    await store.close();
    return { dir, opened: { id, epoch, revision } };
  } catch (error) {
    if (error instanceof StoreError && error.code === "LOCKED") throw error;
    report(
      `the present store can't be read: ${messageOf(error)}; if this backup was restored before, give a later --epoch than that time`,
    );
    return { dir, opened: undefined };
  }
}

/**
 * Returns the directory of the store, or that of the former store if a replacement was interrupted
 * between its two renames.
 */
async function presentDir(place: StorePlace): Promise<string | undefined> {
  const dir = levelDir(place);
  if (existsSync(dir)) return dir;
  const kept = (await readdir(place.dataDir)).filter((name) => name.startsWith(REPLACED)).sort();
  const last = kept.at(-1);
  return last === undefined ? undefined : join(place.dataDir, last);
}

/** Starts the coordinator with the former store. Returns the error that describes this. */
async function putBack(
  unit: ServiceUnit,
  { place, clock, report, moves = diskMoves }: ReplaceStoreOptions,
  { replaced }: Pick<ReplaceResult, "replaced">,
  cause: unknown,
): Promise<Error> {
  const why = `the coordinator did not become ready with the restored store: ${messageOf(cause)}`;
  if (replaced === undefined) return new CoordinatorError("UNAVAILABLE", why, { cause });
  report(`${why}; putting the former store back`);
  await unit.stop();
  const failed = join(place.dataDir, `${FAILED}${stampOf(clock)}`);
  await moveDirectory(levelDir(place), failed, moves);
  await moveDirectory(replaced, levelDir(place), moves);
  await giveStoreToOwner(place.dataDir);
  const state = await unit.start().then(
    () => "The coordinator runs with the former store again",
    (failure: unknown) =>
      `The former store is in its place again, and the coordinator does not become ready with it either: ${messageOf(failure)}`,
  );
  const message = `${why}. ${state}; the restored store is kept in ${failed}`;
  return new CoordinatorError("UNAVAILABLE", message, { cause });
}

function stampOf({ nowMs }: Clock): string {
  return new Date(nowMs()).toISOString().replaceAll(/[-:.]/g, "");
}
