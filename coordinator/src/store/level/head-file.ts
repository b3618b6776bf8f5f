import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { corrupt } from "../format/corrupt.ts";
import { crc32c } from "../format/crc32c.ts";
import type { Head } from "../format/findings.ts";
import { StoreError } from "../store-error.ts";
import { type Disk, SYSTEM_DISK, writeWhole } from "./disk.ts";

/**
 * The distance of the two slots, which are written in turn, so that a torn write leaves the other one. Each is in a page of
 * its own and is one sector of readable text: a checksum and a line of JSON.
 */
const SLOT_STRIDE_BYTES = 4096;
const SLOT_BYTES = 512;

/** The first sequence number. It is even, so that a new file uses the first slot only. */
const FIRST_SEQUENCE = 2;

/**
 * The file with the last acknowledged revision. LevelDB silently drops the end of a damaged log, as if those writes had
 * never been acknowledged; this file distinguishes the two cases. It is written (5 µs, no sync) before each
 * acknowledgement, so it is exact after a crash of the process. It is synced in the background, so after a crash of the
 * machine it can be behind by SYNC_DELAY_MS and one sync.
 */
export class HeadFile {
  readonly #disk: Disk;
  readonly #fd: number;
  #sequence: number;
  #syncing: Promise<void> | undefined;
  #dirty = false;

  private constructor(disk: Disk, fd: number, sequence: number) {
    this.#disk = disk;
    this.#fd = fd;
    this.#sequence = sequence;
  }

  /** Reads the file. Returns undefined if there is none. @throws StoreError CORRUPT if both slots are damaged. */
  static read(file: string): Head | undefined {
    return readSlots(file)?.head;
  }

  /** Opens or creates the file and writes the head durably. A new file gets its name only once it contains a head. */
  static open(file: string, head: Head, disk: Disk = SYSTEM_DISK): HeadFile {
    if (!existsSync(file)) writeWhole(disk, file, encodeSlot(FIRST_SEQUENCE, head));
    const sequence = readSlots(file, "lenient")?.sequence ?? 0;
    const fd = disk.open(file, "create");
    const opened = new HeadFile(disk, fd, sequence);
    opened.write(head);
    disk.sync(fd);
    disk.syncDirectory(dirname(file));
    return opened;
  }

  write(head: Head): void {
    this.#sequence++;
    const slot = encodeSlot(this.#sequence, head);
    this.#disk.write(this.#fd, slot, (this.#sequence % 2) * SLOT_STRIDE_BYTES);
    this.#dirty = true;
  }

  /** Makes all previous writes durable. */
  async sync(): Promise<void> {
    while (this.#syncing !== undefined) await this.#syncing;
    if (!this.#dirty) return;
    this.#dirty = false;
    this.#syncing = this.#disk.syncLater(this.#fd).finally(() => {
      this.#syncing = undefined;
    });
    await this.#syncing;
  }

  close(): void {
    this.#disk.close(this.#fd);
  }
}

function encodeSlot(sequence: number, { store, revision, chain }: Head): Buffer {
  const json = JSON.stringify({ sequence, store, revision, chain });
  const line = `${crc32c(Buffer.from(json)).toString(16).padStart(8, "0")} ${json}\n`;
  const slot = Buffer.alloc(SLOT_BYTES, " ");
  slot.write(line);
  return slot;
}

interface Slot {
  readonly sequence: number;
  readonly head: Head;
}

function readSlots(file: string, mode: "strict" | "lenient" = "strict"): Slot | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new StoreError("IO_ERROR", `can't read ${file}`, { cause: error });
  }
  const slots = [0, SLOT_STRIDE_BYTES]
    .map((at) => parseSlot(bytes.subarray(at, at + SLOT_BYTES).toString("latin1")))
    .filter((slot) => slot !== undefined)
    .sort((a, b) => b.sequence - a.sequence);
  if (slots[0] === undefined && mode === "strict") {
    throw corrupt(["the HEAD file is damaged: whether the end of the log is missing is unknown"]);
  }
  return slots[0];
}

function parseSlot(text: string): Slot | undefined {
  const [crc, json] = [text.slice(0, 8), text.slice(9).trimEnd()];
  if (crc32c(Buffer.from(json, "latin1")) !== Number.parseInt(crc, 16)) return undefined;
  const fields: unknown = JSON.parse(json);
  if (typeof fields !== "object" || fields === null) return undefined;
  const { sequence, store, revision, chain }: Record<string, unknown> = { ...fields };
  if (typeof sequence !== "number" || typeof store !== "string") return undefined;
  if (typeof revision !== "number" || typeof chain !== "string") return undefined;
  return { sequence, head: { store, revision, chain } };
}
