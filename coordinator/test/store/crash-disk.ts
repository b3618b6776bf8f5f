import type { DirectoryLock } from "@forage/identity/directory-lock";
import type { Database } from "../../src/store/level/database.ts";
import { type Disk, SYSTEM_DISK } from "../../src/store/level/disk.ts";
import type { MemoryLocks } from "./memory-locks.ts";

/** A fault at one of the steps of a run. Steps are counted from 1. */
export interface Disturbance {
  /** The process ends here: this step and all later ones have no effect. A write is cut in half. */
  readonly crashAt?: number;
  /** This step fails once with an I/O error, and the process continues. */
  readonly failAt?: number;
}

/**
 * The system's disk, on which the process ends or fails at one step. A step is a system call with
 * an effect, or a write of LevelDB. Locks are in memory, because a real one starts a process.
 */
export class CrashDisk implements Disk {
  readonly #disturbance: Disturbance;
  readonly #locks: MemoryLocks;
  /** The number of started steps. */
  steps = 0;
  /** Whether the step of the fault was reached. */
  disturbed = false;
  /** The last step, for the message of a failed test. */
  last = "";

  constructor(locks: MemoryLocks, disturbance: Disturbance = {}) {
    this.#locks = locks;
    this.#disturbance = disturbance;
  }

  makeDirectory(path: string): void {
    this.#step("makeDirectory", path, () => SYSTEM_DISK.makeDirectory(path));
  }

  removeDirectory(path: string): void {
    this.#step("removeDirectory", path, () => SYSTEM_DISK.removeDirectory(path));
  }

  link(from: string, to: string): void {
    this.#step("link", to, () => SYSTEM_DISK.link(from, to));
  }

  copy(from: string, to: string): void {
    this.#step("copy", to, () => SYSTEM_DISK.copy(from, to));
  }

  rename(from: string, to: string): void {
    this.#step("rename", `${from} to ${to}`, () => SYSTEM_DISK.rename(from, to));
  }

  unlink(path: string): void {
    this.#step("unlink", path, () => SYSTEM_DISK.unlink(path));
  }

  open(path: string, how: "create" | "replace"): number {
    return this.#step("open", path, () => SYSTEM_DISK.open(path, how));
  }

  write(fd: number, bytes: Buffer, at?: number): void {
    const half = bytes.subarray(0, bytes.length / 2);
    this.#step(
      "write",
      String(fd),
      () => SYSTEM_DISK.write(fd, bytes, at),
      () => SYSTEM_DISK.write(fd, half, at),
    );
  }

  sync(fd: number): void {
    this.#step("sync", String(fd), () => SYSTEM_DISK.sync(fd));
  }

  syncLater(fd: number): Promise<void> {
    return SYSTEM_DISK.syncLater(fd);
  }

  /**
   * Closes the file even after the crash, because the kernel closes the files of a process that
   * ends.
   */
  close(fd: number): void {
    SYSTEM_DISK.close(fd);
  }

  syncDirectory(path: string): void {
    this.#step("syncDirectory", path, () => SYSTEM_DISK.syncDirectory(path));
  }

  lock(dir: string): Promise<DirectoryLock | undefined> {
    return this.#locks.acquire(dir);
  }

  async openDatabase(dir: string): Promise<Database> {
    const db = await this.#step("openDatabase", dir, () => SYSTEM_DISK.openDatabase(dir));
    return this.#stepsOf(db);
  }

  async repairDatabase(dir: string): Promise<void> {
    await this.#step("repairDatabase", dir, () => SYSTEM_DISK.repairDatabase(dir));
  }

  /** Counts LevelDB's writes as steps as well; each has changed its files already. */
  #stepsOf(db: Database): Database {
    const put = db.put.bind(db);
    const batch = db.batch.bind(db);
    return new Proxy(db, {
      get: (target, name) => {
        if (name === "put")
          return (...args: Parameters<typeof put>) => this.#step("put", "", () => put(...args));
        if (name === "batch") return () => this.#chained(batch());
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  #chained(batch: ReturnType<Database["batch"]>): ReturnType<Database["batch"]> {
    const write = batch.write.bind(batch);
    batch.write = () => this.#step("batch", "", () => write({ sync: true }));
    return batch;
  }

  #step<T>(what: string, where: string, act: () => T, actInPart?: () => void): T {
    const { crashAt = Number.POSITIVE_INFINITY, failAt } = this.#disturbance;
    this.steps++;
    if (this.steps > crashAt) throw new Crash(this.last);
    this.last = `${what} ${where}`;
    if (this.steps === crashAt || this.steps === failAt) {
      this.disturbed = true;
      actInPart?.();
      throw this.steps === crashAt ? new Crash(this.last) : new IoError(this.last);
    }
    return act();
  }
}

/** Thrown to end the run where the process would end. */
export class Crash extends Error {
  constructor(step: string) {
    super(`the process ended before: ${step}`);
    this.name = "Crash";
  }
}

class IoError extends Error {
  readonly code = "EIO";

  constructor(step: string) {
    super(`EIO: ${step}`);
    this.name = "IoError";
  }
}
