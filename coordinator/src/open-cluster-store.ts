import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "./config.ts";
import { authorityFile } from "./identity.ts";
import { type LevelStore, type LevelStoreOptions, openLevelStore, StoreError } from "./store/index.ts";

/**
 * Opens the cluster's store, or makes it at the first start. A cluster whose authority exists had a store before: if
 * that is gone, an empty one would let the agents of the cluster down, so one is made only when the operator asks.
 */
export async function openClusterStore(
  dataDir: string,
  newStore: boolean,
  options: Omit<LevelStoreOptions, "dir" | "create">,
): Promise<LevelStore> {
  const dir = join(dataDir, "store");
  if (newStore && existsSync(join(dir, "db"))) {
    throw new ConfigError(`--new-store: there is a store in ${dir}; start without the flag to use it`);
  }
  const create = newStore || !existsSync(authorityFile(dataDir)) ? "allow" : "refuse";
  try {
    return await openLevelStore({ ...options, dir, create });
  } catch (error) {
    if (error instanceof StoreError && error.code === "MISSING")
      throw lost(dir, authorityFile(dataDir), error);
    throw error;
  }
}

function lost(dir: string, authority: string, cause: StoreError): StoreError {
  return new StoreError(
    "MISSING",
    `there is no store in ${dir}, but the cluster's authority ${authority} exists, so there was one: check that the ` +
      "data directory is the right one and its disk is mounted, then restore a backup with `forage-coordinator " +
      "restore FILE`. Without a backup, `--new-store` starts with an empty store, and every host has to join again",
    { cause },
  );
}
