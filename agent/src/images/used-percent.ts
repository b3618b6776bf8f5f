import { statfs } from "node:fs/promises";

/** As `df` counts: of what those who are not root can use. 0 for file systems that have no size. */
export async function usedPercent(directory: string): Promise<number> {
  const { blocks, bfree, bavail } = await statfs(directory);
  const used = blocks - bfree;
  const usable = used + bavail;
  return usable <= 0 ? 0 : (100 * used) / usable;
}
