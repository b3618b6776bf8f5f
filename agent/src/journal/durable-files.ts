import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Syncs run in the thread pool, which has four threads. Twice as many writes keep it busy and bound the number of open
 * files.
 */
const PARALLEL_WRITES = 8;
const TEMPORARY_SUFFIX = ".tmp";
export const ASIDE_SUFFIX = ".corrupt";

export interface NamedFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/**
 * Writes all files so that each is complete and survives a power cut once this resolves. Each file is synced
 * separately, and all names by one sync of the directory.
 */
export async function writeFilesDurably(dir: string, files: readonly NamedFile[]): Promise<void> {
  const waiting = [...files];
  const workers = Array.from({ length: Math.min(PARALLEL_WRITES, files.length) }, async () => {
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) await writeSynced(dir, file);
  });
  // All writes must end before an error is reported. Otherwise a late write would change files after the caller has
  // continued.
  const failed = (await Promise.allSettled(workers)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  await syncDirectory(dir);
}

/** Syncs the directory, so that earlier renames and removals are durable. */
export async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function makePrivateDirectory(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
}

/** Lists the names in the directory, after removing files of writes that a crash interrupted. */
export async function listSettled(dir: string): Promise<string[]> {
  const names = await readdir(dir);
  const unfinished = names.filter((name) => name.endsWith(TEMPORARY_SUFFIX));
  await Promise.all(unfinished.map((name) => rm(join(dir, name), { force: true })));
  return names.filter((name) => !name.endsWith(TEMPORARY_SUFFIX));
}

/** Returns the path of a file after it was set aside. */
export function asideOf(path: string): string {
  return path + ASIDE_SUFFIX;
}

/** Renames an unreadable file to `<name>.corrupt`, for an operator to inspect. Returns the new path. */
export async function setAside(dir: string, name: string): Promise<string> {
  const path = asideOf(join(dir, name));
  await rename(join(dir, name), path);
  await syncDirectory(dir);
  return path;
}

async function writeSynced(dir: string, file: NamedFile): Promise<void> {
  const path = join(dir, file.name);
  const temporary = path + TEMPORARY_SUFFIX;
  const handle = await open(temporary, "w", 0o600);
  try {
    await handle.writeFile(file.bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, path);
}
