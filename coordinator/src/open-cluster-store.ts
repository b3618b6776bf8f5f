import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { pause } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import { authorityFile } from "./authority/cluster-authority.ts";
import { type Config, ConfigError } from "./config.ts";
import {
  connectToEtcd,
  type DurableStore,
  type EtcdSettings,
  type EtcdStoreOptions,
  type FollowedStore,
  followEtcdStore,
  type Leader,
  openEtcdStore,
  openLevelStore,
  StoreError,
} from "./store/index.ts";
import type { Clock } from "./time/clock.ts";

/** The delay between attempts while another coordinator creates the store, which takes a moment. */
const RETRY_MS = 500;

/** The settings for the location of the store. */
export type StorePlace = Pick<Config, "dataDir" | "store">;

export interface OpenOptions {
  readonly clock: Clock;
  readonly log?: Log["info"];
  /** Called while another coordinator leads, possibly several times. */
  readonly onStandby?: (leader: Leader) => void;
  /**
   * The addresses (HOST:PORT) at which other coordinators reach this one, the preferred one first.
   */
  readonly addresses?: readonly string[];
  /** Aborts the opening of a store in etcd. */
  readonly signal?: AbortSignal;
}

export function levelDir({ dataDir }: StorePlace): string {
  return join(dataDir, "store");
}

/** Returns the options for a store in etcd, after locking the data directory for this process. */
export async function connectStore(
  { dataDir }: StorePlace,
  settings: EtcdSettings,
  clock: Clock,
  addresses: readonly string[] = [],
): Promise<EtcdStoreOptions> {
  const dir = join(dataDir, "store-etcd");
  const { nowMs } = clock;
  const connection = await connectToEtcd({ settings, dir, hostName: hostname(), addresses, clock, nowMs });
  return { ...connection, clock, random: Math.random, newId: randomUUID };
}

/**
 * Opens the cluster's store, or creates it at the first start. If the cluster's authority exists,
 * there was a store before. If that store is missing, agents would stop their pods with an empty
 * one, so it is created only if the operator requests it.
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
    const connected = await connectStore(place, etcd, options.clock, options.addresses);
    const create = newStore ? "require" : known ? "refuse" : "allow";
    return await openEtcdStore({ ...connected, ...options, create });
  } catch (error) {
    if (error instanceof StoreError && error.code === "NOT_EMPTY")
      throw new ConfigError(`--new-store: ${error.message}; start without the flag to use it`);
    if (error instanceof StoreError && error.code === "MISSING") throw lost(place, error);
    throw error;
  }
}

export type OpenedStore =
  | { readonly type: "leads"; readonly store: DurableStore }
  /** Another coordinator leads. */
  | { readonly type: "follows"; readonly store: FollowedStore; readonly self: string };

/** Opens the cluster's store to lead, or to follow the present leader. */
export async function openOrFollow(
  place: StorePlace,
  newStore: boolean,
  options: Omit<OpenOptions, "onStandby">,
): Promise<OpenedStore> {
  for (;;) {
    let other: Leader | undefined;
    const onStandby = (leader: Leader): void => {
      other = leader;
      throw new StoreError("LOCKED", `${leader.name} leads`);
    };
    try {
      return { type: "leads", store: await openClusterStore(place, newStore, { ...options, onStandby }) };
    } catch (error) {
      const { etcd } = place.store;
      if (other === undefined || etcd === undefined) throw error;
      assertHasKeys(place);
      const connected = await connectStore(place, etcd, options.clock, options.addresses);
      try {
        const store = await followEtcdStore({ ...connected, ...options });
        return { type: "follows", store, self: connected.self.holder };
      } catch (failure) {
        // The other coordinator is still creating the store.
        if (!(failure instanceof StoreError && failure.code === "MISSING")) throw failure;
        await pause(options.clock, RETRY_MS, options.signal ?? new AbortController().signal);
      }
    }
  }
}

/**
 * Throws if the authority is missing. A second coordinator with its own authority would lock out
 * all nodes once it leads.
 */
function assertHasKeys({ dataDir }: StorePlace): void {
  if (existsSync(authorityFile(dataDir))) return;
  throw new ConfigError(
    `${authorityFile(dataDir)} does not exist, and another coordinator leads: get the keys with the command that \`forage coordinator add\` prints`,
  );
}

function openOnDisk(place: StorePlace, newStore: boolean, known: boolean, { clock, log }: OpenOptions) {
  const dir = levelDir(place);
  if (newStore && existsSync(join(dir, "db"))) {
    throw new ConfigError(`--new-store: a store already exists in ${dir}; start without the flag to use it`);
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
