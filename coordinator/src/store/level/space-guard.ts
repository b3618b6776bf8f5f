import { randomFillSync } from "node:crypto";
import { type Disk, SYSTEM_DISK, sizeOf } from "./disk.ts";

/**
 * The free space below which nothing new is written. LevelDB never recovers from a failed write, so none may fail. It covers
 * the writes that are already waiting (PENDING_BYTES_MAX, 32 MiB) and the files LevelDB writes in the background.
 */
export const FREE_SPACE_MIN_BYTES = 64 * 1024 * 1024;

/** Writing resumes with a quarter more free space, to avoid flickering. */
const FREE_SPACE_RESUME = 1.25;

/** Opening writes a table of up to twice LevelDB's write buffer (4 MiB), and must be possible on a full disk. */
export const BALLAST_BYTES = 16 * 1024 * 1024;

/** Asked again when so much was written: 64 times within the watermark. */
const CHECK_EVERY_BYTES = 1024 * 1024;

export interface SpaceGuardOptions {
  /** A file that takes up space for the day the disk is full. */
  readonly ballastFile: string;
  readonly ballastBytes: number;
  readonly minBytes: number;
  /** Free space for us, in bytes. */
  readonly freeBytes: () => Promise<number>;
  readonly disk?: Disk;
}

/** Watches the free space, and keeps ballast that can be dropped. */
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
    return `only ${free} MiB are free on the store's disk, and it needs ${min}: free some, writing goes on by itself`;
  }

  /** Reads the free space now. If that fails, the last state stays. If the disk is gone, the next write reports it. */
  async check(): Promise<void> {
    this.#unchecked = 0;
    this.#freeBytes = await this.#options.freeBytes().catch(() => this.#freeBytes);
    const { minBytes } = this.#options;
    this.#low = this.#freeBytes < (this.#low ? minBytes * FREE_SPACE_RESUME : minBytes);
  }

  /** Counts written bytes and checks the space when enough were written. */
  async wrote(bytes: number): Promise<void> {
    this.#unchecked += bytes;
    if (this.#unchecked >= CHECK_EVERY_BYTES) await this.check();
  }

  /** Before opening: gives the ballast's space to the database if it may need it. */
  async makeRoom(): Promise<void> {
    await this.check();
    if (!this.#low || sizeOf(this.#options.ballastFile) === undefined) return;
    this.#disk.unlink(this.#options.ballastFile);
    await this.check();
  }

  /** Creates the ballast after opening, if there is room for it. */
  async loadBallast(): Promise<void> {
    const { ballastFile, ballastBytes, minBytes } = this.#options;
    if (sizeOf(ballastFile) === ballastBytes) return;
    if (this.#freeBytes < minBytes + 2 * ballastBytes) return;
    writeBallast(this.#disk, ballastFile, ballastBytes);
    await this.check();
  }
}

const MIB = 1024 * 1024;

/** Random bytes: some file systems keep zeros for free. */
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
