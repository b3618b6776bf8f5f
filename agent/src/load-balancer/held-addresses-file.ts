import { isIP } from "node:net";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { NoteDamage } from "../damage-reports.ts";
import type { StateFiles } from "../feed/state-file.ts";
import { hostFiles } from "../journal/journal-files.ts";
import type { HeldAddress } from "./plan-addresses.ts";

const FILE = "held-addresses.json";
/** Without a record, an address without a lease would count as the host's own for ever. */
const COPY = "held-addresses.copy.json";
const MISSING = "it is missing";
const DAMAGED = "it can't be parsed";
const REWRITTEN = "it is written again";

export interface HeldRecords {
  readonly held: readonly HeldAddress[];
  has(held: HeldAddress): boolean;
  add(held: readonly HeldAddress[]): Promise<void>;
  remove(held: HeldAddress): Promise<void>;
  /** Restores the records if the files on disk differ from what was written. */
  check(): Promise<void>;
}

/**
 * Stores which of the host's addresses the agent has added. The record is written before the host gets the address, so
 * the agent can always remove it.
 */
export class HeldAddressesFile implements HeldRecords {
  readonly #dir: string;
  readonly #noteDamage: NoteDamage;
  readonly #files: StateFiles;
  #held: readonly HeldAddress[];

  private constructor(dir: string, held: readonly HeldAddress[], noteDamage: NoteDamage, files: StateFiles) {
    this.#dir = dir;
    this.#held = held;
    this.#noteDamage = noteDamage;
    this.#files = files;
  }

  /**
   * Opens the file, or its copy if the file is missing or damaged. If neither is readable, no addresses are recorded;
   * the kernel removes them at the end of their leases. Default of `files`: the host's disk.
   */
  static async open(
    dir: string,
    noteDamage: NoteDamage = () => {},
    files: StateFiles = hostFiles,
  ): Promise<HeldAddressesFile> {
    const [own, copy] = [await read(files, join(dir, FILE)), await read(files, join(dir, COPY))];
    const held = own.held ?? copy.held ?? [];
    const file = new HeldAddressesFile(dir, held, noteDamage, files);
    const isLost = own.held === undefined && copy.held === undefined;
    const remedy = isLost ? "its addresses end with their leases" : REWRITTEN;
    if (own.text !== undefined && own.held === undefined) noteDamage(join(dir, FILE), DAMAGED, remedy);
    if (copy.text !== undefined && copy.held === undefined) noteDamage(join(dir, COPY), DAMAGED, remedy);
    if (own.text === undefined && copy.text !== undefined) noteDamage(join(dir, FILE), MISSING, remedy);
    // An earlier version wrote no copy. If the disk is full now, a later check writes it.
    const isWhole = [own, copy].every(({ text }) => text === textOf(held));
    if (held.length > 0 && !isWhole) await file.#write(held).catch(() => undefined);
    return file;
  }

  get held(): readonly HeldAddress[] {
    return this.#held;
  }

  has(held: HeldAddress): boolean {
    return this.#held.some((it) => same(it, held));
  }

  async add(held: readonly HeldAddress[]): Promise<void> {
    const added = held.filter((it) => !this.has(it));
    if (added.length > 0) await this.#write([...this.#held, ...added]);
  }

  async remove(held: HeldAddress): Promise<void> {
    await this.#write(this.#held.filter((it) => !same(it, held)));
  }

  async check(): Promise<void> {
    const expected = textOf(this.#held);
    const texts = new Map([
      [FILE, (await read(this.#files, join(this.#dir, FILE))).text],
      [COPY, (await read(this.#files, join(this.#dir, COPY))).text],
    ]);
    const wrong = [...texts].filter(([, text]) => text !== expected);
    if (wrong.length === 0 || this.#held.length === 0) return;
    await this.#write(this.#held);
    for (const [name, text] of wrong) {
      const reason = text === undefined ? MISSING : "it is not what the agent wrote";
      this.#noteDamage(join(this.#dir, name), reason, REWRITTEN);
    }
  }

  async #write(held: readonly HeldAddress[]): Promise<void> {
    const bytes = Buffer.from(textOf(held));
    await this.#files.makeDirectory(this.#dir);
    await this.#files.write(
      this.#dir,
      [FILE, COPY].map((name) => ({ name, bytes })),
    );
    this.#held = held;
  }
}

/**
 * Returns the file's text with a checksum. The agent removes these addresses from the host, so a flipped bit must not
 * turn one into an address of the host's own.
 */
function textOf(held: readonly HeldAddress[]): string {
  return JSON.stringify(held.map((it) => ({ ...it, checksum: checksumOf(it) })));
}

interface ReadRecords {
  /** The file's text. Undefined if it is missing. */
  readonly text: string | undefined;
  /** The recorded addresses. Undefined if the file is missing or damaged. */
  readonly held: readonly HeldAddress[] | undefined;
}

async function read(files: StateFiles, path: string): Promise<ReadRecords> {
  const bytes = await files.read(path).catch(() => undefined);
  const text = bytes?.toString("utf8");
  return { text, held: text === undefined ? undefined : parse(text) };
}

/** Parses a file. Returns undefined if it is damaged. Older agents wrote no checksums. */
function parse(text: string): HeldAddress[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value) || !value.every(isHeld)) return undefined;
    return value.map((it) => ({ ip: it.ip, interface: it.interface }));
  } catch {
    return undefined;
  }
}

function isHeld(value: unknown): value is HeldAddress {
  if (typeof value !== "object" || value === null || !("ip" in value) || !("interface" in value))
    return false;
  const { ip, interface: name } = value;
  if (typeof ip !== "string" || isIP(ip) === 0 || typeof name !== "string") return false;
  return !("checksum" in value) || value.checksum === checksumOf({ ip, interface: name });
}

function checksumOf({ ip, interface: name }: HeldAddress): string {
  return crc32(`${ip} ${name}`).toString(16).padStart(8, "0");
}

function same(a: HeldAddress, b: HeldAddress): boolean {
  return a.ip === b.ip && a.interface === b.interface;
}
