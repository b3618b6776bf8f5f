import { rename, stat } from "node:fs/promises";

/** Renames `path` to `path.1`, in place of the one before, once it is larger than this. Gives whether it did. */
export async function rotateLog(path: string, bytesMax: number): Promise<boolean> {
  const size = (await stat(path).catch(() => undefined))?.size ?? 0;
  if (size <= bytesMax) return false;
  await rename(path, `${path}.1`);
  return true;
}
