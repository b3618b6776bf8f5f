import type { Stats } from "node:fs";
import { lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";

/**
 * Changes the owner of the store's files to that of the data directory if root has written them:
 * the service runs as that user, and could not open its store otherwise. Does nothing for other
 * users.
 */
export async function giveStoreToOwner(dataDir: string, uid = process.getuid?.()): Promise<void> {
  await giveToOwner(dataDir, (name) => name.startsWith("store"), uid);
}

/** Changes the owner of the keys in the same way. */
export async function giveKeysToOwner(dataDir: string, uid = process.getuid?.()): Promise<void> {
  await giveToOwner(dataDir, (name) => name === "authority" || name === "keys", uid);
}

async function giveToOwner(
  dataDir: string,
  isGiven: (name: string) => boolean,
  uid: number | undefined,
): Promise<void> {
  const owner = await lstat(dataDir).catch(() => undefined);
  if (uid !== 0 || owner === undefined || owner.uid === 0) return;
  const names = await readdir(dataDir);
  for (const name of names.filter(isGiven)) await give(join(dataDir, name), owner);
}

/** Changes the owner of a link itself, not of its target. */
async function give(path: string, owner: Pick<Stats, "uid" | "gid">): Promise<void> {
  const found = await lstat(path);
  if (found.isDirectory()) for (const name of await readdir(path)) await give(join(path, name), owner);
  if (found.uid !== owner.uid || found.gid !== owner.gid) await lchown(path, owner.uid, owner.gid);
}
