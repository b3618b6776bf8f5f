import { randomFillSync } from "node:crypto";
import { type Disk, SYSTEM_DISK, sizeOf } from "./disk.ts";

/**
 * The free space below which nothing new is written. LevelDB never recovers from a failed write, so no write may fail. The
 * space covers the waiting writes (PENDING_BYTES_MAX, 32 MiB) and the files that LevelDB writes in the background.
 */
export const FREE_SPACE_MIN_BYTES = 64 * 1024 * 1024;

/** The factor of free space at which writing resumes, to avoid flapping. */
const FREE_SPACE_RESUME = 1.25;

/**
 * The size of the ballast. Opening writes a table of up to twice LevelDB's write buffer (4 MiB), and must be possible on a
 * full disk.
 */
export const BALLAST_BYTES = 16 * 1024 * 1024;

/** The number of written bytes after which the free space is checked: 64 times within the watermark. */
const CHECK_EVERY_BYTES = 1024 * 1024;

export interface SpaceGuardOptions {
  /** The file that reserves space for an opening on a full disk. */
  readonly ballastFile: string;
  readonly ballastBytes: number;
  readonly minBytes: number;
  /** Returns the free bytes that this process may use. */
  readonly freeBytes: () => Promise<number>;
  readonly disk?: Disk;
}

/** Watches the free space, and manages the ballast. */
export class SpaceGuard {
  readonly #options: SpaceGuardOptions;
  readonly #disk: Disk;
  #freeBytes = Number.POSITIVE_INFINITY;
  #low = false;
  #unchecked = 0;

  constructor(options: SpaceGuardOptions) {
    this.#options = options;
    this.#disk = options.disk ?? SYSTEM_DISK;
  }

  get low(): boolean {
    return this.#low;
  }

  get message(): string {
    const [free, min] = [this.#freeBytes, this.#options.minBytes].map((bytes) => Math.floor(bytes / MIB));
    return `only ${free} MiB are free on the store's disk, and the store needs ${min} MiB: free some space, after which writing resumes automatically`;
  }

  /** Reads the free space. If that fails, the last state stays: if the disk is gone, the next write reports it. */
  async check(): Promise<void> {
    this.#unchecked = 0;
    this.#freeBytes = await this.#options.freeBytes().catch(() => this.#freeBytes);
    const { minBytes } = this.#options;
    this.#low = this.#freeBytes < (this.#low ? minBytes * FREE_SPACE_RESUME : minBytes);
  }

  /** Counts written bytes, and checks the free space when enough were written. */
  async wrote(bytes: number): Promise<void> {
    this.#unchecked += bytes;
    if (this.#unchecked >= CHECK_EVERY_BYTES) await this.check();
  }

  /** Removes the ballast before an opening if the database may need its space. */
  async makeRoom(): Promise<void> {
    await this.check();
    if (!this.#low || sizeOf(this.#options.ballastFile) === undefined) return;
    this.#disk.unlink(this.#options.ballastFile);
    await this.check();
  }

  /** Creates the ballast after an opening if there is space for it. */
  async loadBallast(): Promise<void> {
    const { ballastFile, ballastBytes, minBytes } = this.#options;
    if (sizeOf(ballastFile) === ballastBytes) return;
    if (this.#freeBytes < minBytes + 2 * ballastBytes) return;
    writeBallast(this.#disk, ballastFile, ballastBytes);
    await this.check();
  }
}

const MIB = 1024 * 1024;

/** Writes the ballast with random bytes, because some file systems store zeros without using space. */
function writeBallast(disk: Disk, file: string, bytes: number): void {
  const fd = disk.open(file, "replace");
  try {
    const block = randomFillSync(Buffer.alloc(Math.min(bytes, MIB)));
    for (let left = bytes; left > 0; left -= block.length) disk.write(fd, block.subarray(0, left));
    disk.sync(fd);
  } finally {
    disk.close(fd);
  }
}
