import type { DirectoryLock } from "@forage/identity/directory-lock";
import { StoreError } from "../store-error.ts";
import type { Disk } from "./disk.ts";

/**
 * Locks the directory for one opening of the store. A second opening, in this or another process, fails with LOCKED.
 *
 * LevelDB's LOCK file is not enough: it has a POSIX record lock, which a process loses when it closes any descriptor of the
 * file. A second opening in the same process fails, but releases the lock of the first one. So this lock is taken first,
 * and keeps a second opening away from LOCK. It is a lock of the directory itself, so that only users with access to the
 * directory can take it.
 */
export class Ownership {
  readonly #lock: DirectoryLock;

  private constructor(lock: DirectoryLock) {
    this.#lock = lock;
  }

  static async acquire(dir: string, disk: Pick<Disk, "lock">): Promise<Ownership> {
    const lock = await disk.lock(dir).catch((cause: unknown) => {
      throw new StoreError("IO_ERROR", `the store in ${dir} can't be locked`, { cause });
    });
    if (lock !== undefined) return new Ownership(lock);
    throw new StoreError(
      "LOCKED",
      `the store in ${dir} is open in another process: stop the coordinator, or wait until the other task has ended`,
    );
  }

  async release(): Promise<void> {
    this.#lock.release();
  }
}
