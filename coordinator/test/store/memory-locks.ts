import { statSync } from "node:fs";
import type { DirectoryLock } from "@forage/identity/directory-lock";

/** Locks of real directories that exist only in memory, among the users of this object. */
export class MemoryLocks {
  readonly #held = new Set<string>();

  /** Acquires a lock; undefined if another caller holds it. */
  async acquire(dir: string): Promise<DirectoryLock | undefined> {
    // A directory can have several paths.
    const { dev, ino } = statSync(dir);
    const id = `${dev}:${ino}`;
    if (this.#held.has(id)) return undefined;
    this.#held.add(id);
    return { release: () => void this.#held.delete(id) };
  }
}
