import { rename, stat } from "node:fs/promises";

/**
 * Renames `path` to `path.1`, replacing the previous one, if the file is larger than `bytesMax`. Returns whether it
 * did.
 */
export async function rotateLog(path: string, bytesMax: number): Promise<boolean> {
  const size = (await stat(path).catch(() => undefined))?.size ?? 0;
  if (size <= bytesMax) return false;
  await rename(path, `${path}.1`);
  return true;
}
