import { statSync } from "node:fs";
import type { DirectoryLock } from "@forage/identity/directory-lock";

/** Locks of real directories that are only in memory: they keep away those who share this object. */
export class MemoryLocks {
  readonly #held = new Set<string>();

  /** Undefined: another caller holds the lock. */
  async take(dir: string): Promise<DirectoryLock | undefined> {
    // A directory can have several paths.
    const { dev, ino } = statSync(dir);
    const id = `${dev}:${ino}`;
    if (this.#held.has(id)) return undefined;
    this.#held.add(id);
    return { release: () => void this.#held.delete(id) };
  }
}
