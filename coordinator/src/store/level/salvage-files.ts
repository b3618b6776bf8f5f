import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { type Disk, removeTree } from "./disk.ts";
import { renameAside } from "./evidence.ts";
import type { StoreFiles } from "./files.ts";

/**
 * Returns the directories of the copies from which a salvage reads the damaged database: as it is, and repaired by LevelDB.
 */
export function attemptDirs({ database }: StoreFiles): { readonly plain: string; readonly repaired: string } {
  return { plain: `${database}.salvage-read`, repaired: `${database}.salvage-repaired` };
}

/** Finishes a salvage that was interrupted after the damaged database was renamed and before the new one got its name. */
export function finishSalvage(disk: Disk, { database, salvaged }: StoreFiles): void {
  if (existsSync(database) || !existsSync(salvaged)) return;
  disk.rename(salvaged, database);
  disk.syncDirectory(dirname(database));
}

/** Removes the files of a salvage that was interrupted before it changed the database. */
export function clearSalvage(disk: Disk, files: StoreFiles): void {
  // The directory is complete, and would become the store if the database were ever missing. So it is renamed first.
  renameAside(disk, files.salvaged, ".discarded");
  removeTree(disk, `${files.salvaged}.discarded`);
  removeTree(disk, makingDir(files));
  clearAttempts(disk, files);
}

export function clearAttempts(disk: Disk, files: StoreFiles): void {
  const { plain, repaired } = attemptDirs(files);
  for (const dir of [plain, repaired]) {
    removeTree(disk, `${dir}.incomplete`);
    removeTree(disk, dir);
  }
}

/** Returns the directory in which a salvage creates the new database. */
export function makingDir({ salvaged }: StoreFiles): string {
  return `${salvaged}.incomplete`;
}
