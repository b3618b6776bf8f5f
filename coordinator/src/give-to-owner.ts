import type { Stats } from "node:fs";
import { lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";

/**
 * Gives the store's files to the owner of the data directory, if root has written them: the service runs as that owner, and could not
 * open its store otherwise. Does nothing for another user.
 */
export async function giveStoreToOwner(dataDir: string, uid = process.getuid?.()): Promise<void> {
  await giveToOwner(dataDir, (name) => name.startsWith("store"), uid);
}

/** Does the same for the keys. */
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

/** Links are given away themselves, not what they lead to. */
async function give(path: string, owner: Pick<Stats, "uid" | "gid">): Promise<void> {
  const found = await lstat(path);
  if (found.isDirectory()) for (const name of await readdir(path)) await give(join(path, name), owner);
  if (found.uid !== owner.uid || found.gid !== owner.gid) await lchown(path, owner.uid, owner.gid);
}
