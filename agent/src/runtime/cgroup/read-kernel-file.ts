import { readFileSync } from "node:fs";

/**
 * A process or cgroup may end between two reads. Reading its files fails with ENOENT after its end, and with ENODEV or
 * ESRCH during it.
 */
const GONE: readonly unknown[] = ["ENOENT", "ENODEV", "ESRCH"];

/**
 * Returns the text of a kernel file, or undefined if the process or cgroup has ended. Reads synchronously, because the
 * kernel answers from memory, at a sixth of the cost of a read in another thread.
 */
export function readKernelFile(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (GONE.includes((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}
