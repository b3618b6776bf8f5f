import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Config, ConfigError } from "./config.ts";
import { authorityFile } from "./identity.ts";
import {
  connectToEtcd,
  type DurableStore,
  type EtcdSettings,
  type EtcdStoreOptions,
  type Leader,
  openEtcdStore,
  openLevelStore,
  StoreError,
} from "./store/index.ts";
import type { Clock } from "./time/clock.ts";

/** The settings that say where the store is. */
export type StorePlace = Pick<Config, "dataDir" | "store">;

export interface OpenOptions {
  readonly clock: Clock;
  readonly log?: (fields: Readonly<Record<string, unknown>>, message: string) => void;
  /** Called, perhaps several times, while another coordinator leads. */
  readonly onStandby?: (leader: Leader) => void;
  /** Cancels the opening of a store in etcd. */
  readonly signal?: AbortSignal;
}

export function levelDir({ dataDir }: StorePlace): string {
  return join(dataDir, "store");
}

/** The options for a store in etcd, once this process is the only one of its data directory. */
export async function connectStore(
  { dataDir }: StorePlace,
  settings: EtcdSettings,
  clock: Clock,
): Promise<EtcdStoreOptions> {
  const dir = join(dataDir, "store-etcd");
  const { nowMs } = clock;
  const connection = await connectToEtcd({ settings, dir, hostName: hostname(), clock, nowMs });
  return { ...connection, clock, random: Math.random, newId: randomUUID };
}

/**
 * Opens the cluster's store, or makes it at the first start. A cluster whose authority exists had a store before: if
 * that is gone, an empty one would let the agents of the cluster down, so one is made only when the operator asks.
 */
export async function openClusterStore(
  place: StorePlace,
  newStore: boolean,
  options: OpenOptions,
): Promise<DurableStore> {
  const { etcd } = place.store;
  const known = existsSync(authorityFile(place.dataDir));
  try {
    if (etcd === undefined) return await openOnDisk(place, newStore, known, options);
    const connected = await connectStore(place, etcd, options.clock);
    const create = newStore ? "require" : known ? "refuse" : "allow";
    return await openEtcdStore({ ...connected, ...options, create });
  } catch (error) {
    if (error instanceof StoreError && error.code === "NOT_EMPTY")
      throw new ConfigError(`--new-store: ${error.message}; start without the flag to use it`);
    if (error instanceof StoreError && error.code === "MISSING") throw lost(place, error);
    throw error;
  }
}

function openOnDisk(place: StorePlace, newStore: boolean, known: boolean, { clock, log }: OpenOptions) {
  const dir = levelDir(place);
  if (newStore && existsSync(join(dir, "db"))) {
    throw new ConfigError(`--new-store: there is a store in ${dir}; start without the flag to use it`);
  }
  const create = newStore || !known ? "allow" : "refuse";
  return openLevelStore({ dir, clock, create, ...(log && { log }) });
}

function lost(place: StorePlace, cause: StoreError): StoreError {
  const authority = authorityFile(place.dataDir);
  const isEtcd = place.store.etcd !== undefined;
  const check = isEtcd
    ? `check that \`store.etcd\` names the right cluster of etcd and prefix. A store on the disk is moved with \`forage-coordinator migrate etcd\`. Otherwise `
    : "check that the data directory is the right one and its disk is mounted, then ";
  return new StoreError(
    "MISSING",
    `${cause.message}, but the cluster's authority ${authority} exists, so there was one: ${check}` +
      "restore a backup with `forage-coordinator restore FILE`. Without a backup, `--new-store` starts with an empty store, " +
      "and every host has to join again",
    { cause },
  );
}
