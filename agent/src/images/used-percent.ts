import { statfs } from "node:fs/promises";

/** Returns the bytes that are free for users other than root. */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/**
 * Returns the use in percent of the space available to users other than root, like `df`. Returns 0 for file systems
 * without a size.
 */
export async function usedPercent(directory: string): Promise<number> {
  const { blocks, bfree, bavail } = await statfs(directory);
  const used = blocks - bfree;
  const usable = used + bavail;
  return usable <= 0 ? 0 : (100 * used) / usable;
}
