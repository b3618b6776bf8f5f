import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { identify, isAlive, type ProcessIdentity } from "../lib/process-identity.ts";
import { SetupError } from "../lib/setup-error.ts";

/** Does the work while holding the lock of a file. Throws at once if another process holds it. */
export async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  for (;;) {
    try {
      writeFileSync(path, JSON.stringify(identify(process.pid)), { flag: "wx", mode: 0o600 });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      const holder = readHolder(path);
      if (holder && isAlive(holder)) {
        throw new SetupError(
          "NOT_READY",
          `another run (pid ${holder.pid}) is at work on this`,
          "wait for it to end",
        );
      }
      rmSync(path, { force: true });
    }
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
    removeIfEmpty(dirname(path));
  }
}

// A run that failed early, or removed everything, leaves no empty directory. Files of others remain.
function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // The directory is not empty, or is gone.
  }
}

function readHolder(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
