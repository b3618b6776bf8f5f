import { readFile, writeFile } from "node:fs/promises";

const LIMIT_FILE = "/proc/sys/fs/inotify/max_user_instances";
/** The inotify instances of Envoy itself and of other programs of the same user. */
const OTHERS = 128;
const AT_LEAST = 4_096;

/**
 * Ensures that Envoy can watch this many files by raising the kernel's limit if necessary. Each file takes one of the
 * inotify instances of a user, usually 128, and Envoy ends when none is left. Rejects with an error that includes what
 * to do.
 */
export async function ensureWatchLimit(files: number, limitFile = LIMIT_FILE): Promise<void> {
  const needed = files + OTHERS;
  const limit = Number(await readFile(limitFile, "utf8"));
  if (limit >= needed) return;
  const desired = Math.max(AT_LEAST, 2 ** Math.ceil(Math.log2(needed)));
  try {
    await writeFile(limitFile, String(desired));
  } catch (cause) {
    throw new Error(
      `Envoy watches ${files} files, and the kernel gives a user only ${limit} watches: sysctl fs.inotify.max_user_instances=${desired}`,
      { cause },
    );
  }
}
