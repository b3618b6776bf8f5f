import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../clock.ts";

/** The programs that make file systems, devices and mounts, as `/proc/PID/comm` names them. */
const MAKERS: ReadonlySet<string> = new Set(["losetup", "mkfs.ext4", "mke2fs", "mount", "setpriv"]);
const WAIT_MAX_MS = 10_000;
const CHECK_MS = 50;

/**
 * Waits until the programs that an earlier agent started below `directory` have ended. A program that was killed with its agent may
 * still be inside a system call, and would attach a device after this agent has looked for those that are left. Gives up after 10 s,
 * because a program that waits for a dead server never ends.
 */
export async function unfinishedProgramsEnd(
  directory: string,
  clock: Clock,
  procDir = "/proc",
): Promise<void> {
  const endMs = clock.monotonicMs() + WAIT_MAX_MS;
  while ((await unfinishedPrograms(directory, procDir)).length > 0 && clock.monotonicMs() < endMs)
    await new Promise<void>((resolve) => clock.schedule(CHECK_MS, resolve));
}

/** Returns the process ids of programs that work below `directory` in this process's mount namespace. */
export async function unfinishedPrograms(directory: string, procDir = "/proc"): Promise<readonly string[]> {
  const own = await mountNamespaceOf(join(procDir, "self"));
  const ids = (await readdir(procDir)).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    ids.map(async (id) => {
      const path = join(procDir, id);
      const comm = (await textOf(join(path, "comm"))).trim();
      if (!MAKERS.has(comm)) return [];
      const isBelow = (await textOf(join(path, "cmdline")))
        .split("\0")
        .some((argument) => argument.startsWith(`${directory}/`));
      // A container may name a program of its own as it likes, but has another mount namespace.
      return isBelow && (await mountNamespaceOf(path)) === own ? [id] : [];
    }),
  );
  return found.flat();
}

/** A process that has ended meanwhile has no text. */
function textOf(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}

function mountNamespaceOf(path: string): Promise<string> {
  return readlink(join(path, "ns", "mnt")).catch(() => "");
}
