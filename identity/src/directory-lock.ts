import { spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";

/** Administrators' tools are in sbin, which a service's PATH may lack. */
const PATH = "/usr/bin:/bin:/usr/sbin:/sbin";
/** The exit code of `flock --nonblock` when another process holds the lock. */
const EXIT_HELD = 1;

/** A lock on a directory, which the kernel gives back however the process ends. */
export interface DirectoryLock {
  release(): void;
}

/**
 * Takes the directory's lock; undefined if another process, or another caller in this one, holds it. It is a lock of the directory
 * itself, so that only those who may open the directory can hold it: names in the kernel's abstract namespace are free to any user.
 * Node has no call for it: `flock` of util-linux takes it on a descriptor that it shares with this process.
 */
export async function lockDirectory(dir: string): Promise<DirectoryLock | undefined> {
  // Closed in every program that this process starts.
  const descriptor = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const code = await flock(descriptor);
    if (code === 0) return { release: () => closeSync(descriptor) };
    if (code !== EXIT_HELD) throw new Error(`flock ended with ${code}`);
    closeSync(descriptor);
    return undefined;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function flock(descriptor: number): Promise<number | NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    const child = spawn("flock", ["--exclusive", "--nonblock", "3"], {
      env: { PATH },
      stdio: ["ignore", "ignore", "ignore", descriptor],
    });
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? signal));
  });
}
