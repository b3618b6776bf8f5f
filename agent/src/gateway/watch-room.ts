import { readFile, writeFile } from "node:fs/promises";

const LIMIT_FILE = "/proc/sys/fs/inotify/max_user_instances";
/** Envoy's own, and those of other programs of the same user. */
const OTHERS = 128;
const AT_LEAST = 4_096;

/**
 * Makes sure that this many files can be watched, each of which takes Envoy one of the instances that the kernel gives a user: 128
 * as a rule, and Envoy ends when there is none left. Rejects with an Error that says what to do.
 */
export async function makeRoomToWatch(files: number, limitFile = LIMIT_FILE): Promise<void> {
  const needed = files + OTHERS;
  const limit = Number(await readFile(limitFile, "utf8"));
  if (limit >= needed) return;
  const wanted = Math.max(AT_LEAST, 2 ** Math.ceil(Math.log2(needed)));
  try {
    await writeFile(limitFile, String(wanted));
  } catch (cause) {
    throw new Error(
      `Envoy watches ${files} files, and the kernel gives a user only ${limit} watches: sysctl fs.inotify.max_user_instances=${wanted}`,
      { cause },
    );
  }
}
