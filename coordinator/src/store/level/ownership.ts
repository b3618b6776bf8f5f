import type { DirectoryLock } from "@forage/identity/directory-lock";
import { StoreError } from "../store-error.ts";
import type { Disk } from "./disk.ts";

/**
 * Holds the directory for this one opening of the store: a second one, in this process or another, gets LOCKED.
 *
 * LevelDB's LOCK is not enough. It is a POSIX record lock, and a process drops those when it closes any descriptor of
 * the file: a second opening in the same process fails, but takes the lock of the first one with it. So this guard
 * comes first and keeps a second opening away from LOCK. It is a lock of the directory itself, which only those can
 * take who may open the directory.
 */
export class Ownership {
  readonly #lock: DirectoryLock;

  private constructor(lock: DirectoryLock) {
    this.#lock = lock;
  }

  static async take(dir: string, disk: Pick<Disk, "lock">): Promise<Ownership> {
    const lock = await disk.lock(dir).catch((cause: unknown) => {
      throw new StoreError("IO_ERROR", `the store in ${dir} can't be guarded`, { cause });
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
