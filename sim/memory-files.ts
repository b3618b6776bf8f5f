import { join } from "node:path";
import type { Clock } from "@forage/common/clock";
import type { JournalFiles } from "../agent/src/journal/journal-files.ts";

const ASIDE_SUFFIX = ".corrupt";
const LONGEST_WRITE_MS = 8;
/** The interval of checks whether a stall has ended early. */
const STALL_LOOK_MS = 1_000;

/** A disk in memory. It survives the agents that write to it. */
export class MemoryDisk {
  readonly files = new Map<string, Buffer>();
  full = false;
  /** The monotonic time until which no write or removal ends. */
  stalledUntilMs = 0;

  /** Deletes the files that a real host keeps in memory. */
  reboot(): void {
    for (const path of this.files.keys()) if (isVolatile(path)) this.files.delete(path);
  }
}

function isVolatile(path: string): boolean {
  return path.startsWith("/run/");
}

/** The access of one life of an agent to the disk. */
export interface DiskAccess {
  readonly clock: Pick<Clock, "monotonicMs" | "schedule">;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  /** Aborted when the agent dies. Its calls neither end nor take effect from then on. */
  readonly life: AbortSignal;
}

/**
 * Returns the journal's files on the disk. An agent that dies while it writes several files leaves only some of them.
 */
export function filesOn(disk: MemoryDisk, access: DiskAccess): JournalFiles {
  const { files } = disk;
  const change = async (path: string, run: () => void): Promise<void> => {
    if (!isVolatile(path)) await delayAccess(disk, access);
    // A dead process changes nothing.
    if (!access.life.aborted) run();
  };
  const put = (path: string, bytes: Uint8Array): void => {
    if (disk.full && !isVolatile(path))
      throw new FileError("ENOSPC", `no space left on device, write '${path}'`);
    files.set(path, Buffer.from(bytes));
  };
  return {
    makeDirectory: async () => undefined,
    list: async (dir) => namesIn(files, dir),
    read: async (path) => {
      const bytes = files.get(path);
      if (bytes === undefined) throw new FileError("ENOENT", `no such file or directory, open '${path}'`);
      return Buffer.from(bytes);
    },
    write: async (dir, written) => {
      for (const { name, bytes } of written) {
        const path = join(dir, name);
        await change(path, () => put(path, bytes));
      }
    },
    remove: (path) => change(path, () => void files.delete(path)),
    setAside: async (dir, name) => {
      const path = join(dir, name);
      const bytes = files.get(path);
      if (bytes === undefined) throw new FileError("ENOENT", `no such file or directory, rename '${path}'`);
      files.delete(path);
      files.set(path + ASIDE_SUFFIX, bytes);
      return path + ASIDE_SUFFIX;
    },
    sync: (dir) => change(`${dir}/`, () => undefined),
  };
}

/** An error as the operating system reports it. */
class FileError extends Error {
  readonly code: "ENOENT" | "ENOSPC";

  constructor(code: FileError["code"], what: string) {
    super(`${code}: ${what}`);
    this.name = "FileError";
    this.code = code;
  }
}

function namesIn(files: ReadonlyMap<string, Buffer>, dir: string): string[] {
  const prefix = `${dir}/`;
  return [...files.keys()]
    .filter((path) => path.startsWith(prefix) && !path.includes("/", prefix.length))
    .map((path) => path.slice(prefix.length));
}

async function delayAccess(disk: MemoryDisk, access: DiskAccess): Promise<void> {
  await wait(access, Math.ceil(access.random() * LONGEST_WRITE_MS));
  while (disk.stalledUntilMs > access.clock.monotonicMs()) await wait(access, STALL_LOOK_MS);
}

function wait({ clock, life }: DiskAccess, forMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.schedule(forMs, () => {
      if (!life.aborted) resolve();
    });
  });
}
