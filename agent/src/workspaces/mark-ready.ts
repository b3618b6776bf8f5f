import { chown, lstat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { Directory } from "@forage/archive";
import { ContentSource } from "@forage/proto/forage/workspaces/v1/workspaces";
import { WORKSPACE_GID, WORKSPACE_UID } from "./confined.ts";

const DIRECTORY = ".gitpod";
const FILE = "ready";
const FILE_MODE = 0o644;

/** The terms by which `.gitpod/ready` states the source of the content. */
const SOURCES: ReadonlyMap<ContentSource, string> = new Map([
  [ContentSource.BACKUP, "from-backup"],
  [ContentSource.PREBUILD, "from-prebuild"],
]);

/**
 * Writes `.gitpod/ready` into complete content. The content may be untrusted, so no link in it is followed. Returns
 * false, without a change, if something else exists at that path.
 */
export async function markReady(content: string, source: ContentSource): Promise<boolean> {
  const before = await lstat(content);
  const root = await Directory.open(content);
  try {
    const present = await root.stat(DIRECTORY);
    if (present === undefined) {
      await root.makeDirectory(DIRECTORY, 0o755);
      await chown(join(content, DIRECTORY), WORKSPACE_UID, WORKSPACE_GID);
    } else if (!present.isDirectory()) return false;
    const directory = await root.enter(DIRECTORY);
    try {
      if ((await directory.stat(FILE))?.isDirectory()) return false;
      await directory.remove(FILE).catch(() => undefined);
      const file = await directory.createFile(FILE);
      try {
        await file.writeFile(`${JSON.stringify({ source: SOURCES.get(source) ?? "from-other" })}\n`);
        await file.chown(WORKSPACE_UID, WORKSPACE_GID);
        await file.chmod(FILE_MODE);
      } finally {
        await file.close();
      }
    } finally {
      await directory.close();
    }
    // The directory keeps its modification time from the archive.
    await utimes(content, before.atime, before.mtime);
    return true;
  } finally {
    await root.close();
  }
}
