import { spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";

/** Administrators' tools are in sbin directories, which the PATH of a service may lack. */
const PATH = "/usr/bin:/bin:/usr/sbin:/sbin";
/** The exit code of `flock --nonblock` when another process holds the lock. */
const EXIT_HELD = 1;

/** A lock on a directory. The kernel releases it when the process ends, for whatever reason. */
export interface DirectoryLock {
  release(): void;
}

/**
 * Locks the directory. Returns `undefined` if another process, or another caller in this one, has locked it. The lock
 * is on the directory itself, so only users who may open the directory can lock it; a name in the kernel's abstract
 * namespace could be taken by any user. Node.js has no call for it, so `flock` of util-linux locks a descriptor that it
 * shares with this process.
 */
export async function lockDirectory(dir: string): Promise<DirectoryLock | undefined> {
  // The kernel closes the descriptor in every program that this process starts.
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
