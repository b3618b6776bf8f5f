import { randomBytes } from "node:crypto";
import { open, rm, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, pause } from "./clock.ts";

export interface DiskReserveOptions {
  /** A file on the disk that the agent writes to. */
  readonly path: string;
  /** The size in bytes. 0: there is no reserve. */
  readonly bytes: number;
  readonly clock: Clock;
  readonly onEvent: (event: string, fields: object) => void;
}

/**
 * Enough for the states, network records, host files and first log lines of several hundred pods, which an agent writes
 * when it restarts the pods after a reboot.
 */
export const DISK_RESERVE_BYTES = 8 * 1024 * 1024;

/** The agent removes the reserve if less space than this is free. Restarting one pod needs about as much. */
const FULL_BYTES = 1024 * 1024;
/**
 * The reserve is created only on a disk with several times as much free space, so that it never fills the disk itself.
 */
const ROOM_FACTOR = 4;
const CHECK_INTERVAL_MS = 60_000;
const BLOCK_BYTES = 1024 * 1024;

/** A file that occupies disk space, and is removed if the agent starts on a full disk. */
export class DiskReserve {
  readonly #options: DiskReserveOptions;

  constructor(options: DiskReserveOptions) {
    this.#options = options;
  }

  /** Removes the reserve if the disk is full. Call it before anything is written. Never rejects. */
  async makeRoom(): Promise<void> {
    const { path, bytes, onEvent } = this.#options;
    try {
      const freeBytes = await freeBytesAt(path);
      if (bytes === 0 || freeBytes >= FULL_BYTES || (await sizeOf(path)) === undefined) return;
      await rm(path, { force: true });
      onEvent("disk-reserve-given-up", { freeBytes, reserveBytes: bytes });
    } catch (err) {
      onEvent("disk-reserve-not-given-up", { err });
    }
  }

  /** Creates the reserve once the disk has room for it. Runs until the signal aborts. */
  async keep(signal: AbortSignal): Promise<void> {
    const { bytes, clock, onEvent } = this.#options;
    if (bytes === 0) return;
    while (!signal.aborted) {
      await this.#allocate().catch((err: unknown) => onEvent("disk-reserve-not-taken", { err }));
      await pause(clock, CHECK_INTERVAL_MS, signal);
    }
  }

  async #allocate(): Promise<void> {
    const { path, bytes } = this.#options;
    if ((await sizeOf(path)) === bytes) return;
    if ((await freeBytesAt(path)) < ROOM_FACTOR * bytes) return;
    const file = await open(path, "w", 0o600);
    try {
      // Some file systems store zeros without using space.
      for (let left = bytes; left > 0; left -= BLOCK_BYTES)
        await file.write(randomBytes(Math.min(left, BLOCK_BYTES)));
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await file.close();
    }
  }
}

async function freeBytesAt(path: string): Promise<number> {
  // The agent runs as root, so blocks reserved for root count as free.
  const { bfree, bsize } = await statfs(dirname(path));
  return bfree * bsize;
}

async function sizeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ size }) => size,
    () => undefined,
  );
}
