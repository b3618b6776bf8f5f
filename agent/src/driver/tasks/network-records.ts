import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { NoteDamage } from "../../damage-reports.ts";
import type { PodSandbox, PortMapping } from "../../network/network.ts";

/** A network that the driver has created, with the host ports that forward to it. */
export interface NetworkRecord {
  readonly owner: string;
  readonly sandbox: PodSandbox;
  readonly ports: readonly PortMapping[];
}

/** The records in the directories. */
export interface LoadedNetworks {
  /** Records by owner. */
  readonly records: ReadonlyMap<string, NetworkRecord>;
  /** Owners of records with one file missing. If their network is gone, a removal was interrupted. */
  readonly halves: ReadonlySet<string>;
  /** Owners whose record is unreadable in both files. */
  readonly unreadable: readonly string[];
}

export interface NetworkRecordsOptions {
  /** The directory with one file for each network. A directory beside it contains the copies. */
  readonly dir: string;
  readonly noteDamage: NoteDamage;
}

const TEMPORARY_SUFFIX = ".tmp";
/** The fields are owner, sandbox and ports. */
const RECORD_FIELDS = 3;
const REWRITTEN = "it is written again from its copy";
const LOST = "the task keeps its network, and loses its published ports";

/**
 * Stores each network twice, so that a running task stays connected if one file is damaged. Nomad doesn't repeat
 * requests that it made to an earlier process of the driver.
 */
export class NetworkRecords {
  readonly #dirs: readonly string[];
  readonly #noteDamage: NoteDamage;

  constructor({ dir, noteDamage }: NetworkRecordsOptions) {
    this.#dirs = [dir, `${dir}-copies`];
    this.#noteDamage = noteDamage;
  }

  /** Returns the owners that have a file. */
  async owners(): Promise<readonly string[]> {
    const listed = await Promise.all(this.#dirs.map((dir) => readdir(dir).catch((): string[] => [])));
    return [...new Set(listed.flat())].filter((name) => !name.endsWith(TEMPORARY_SUFFIX)).sort();
  }

  /** Reads all records, and restores damaged and missing files. */
  async load(): Promise<LoadedNetworks> {
    for (const dir of this.#dirs) {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      // A write that a crash interrupted belongs to a failed start.
      for (const name of await readdir(dir))
        if (name.endsWith(TEMPORARY_SUFFIX)) await rm(join(dir, name), { force: true });
    }
    const records = new Map<string, NetworkRecord>();
    const halves = new Set<string>();
    const unreadable: string[] = [];
    for (const owner of await this.owners()) {
      const paths = this.#dirs.map((dir) => join(dir, owner));
      const texts = await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => undefined)));
      const read = texts.map((text) => (text === undefined ? undefined : parseRecord(text, owner)));
      const record = read.find((it) => it !== undefined);
      for (const [index, path] of paths.entries()) {
        if (texts[index] === undefined) halves.add(owner);
        else if (read[index] === undefined)
          this.#noteDamage(path, "it can't be parsed", record === undefined ? LOST : REWRITTEN);
      }
      if (record === undefined) {
        unreadable.push(owner);
        continue;
      }
      records.set(owner, record);
      // On a full disk one readable file is enough.
      if (texts.some((text) => text !== textOf(record))) await this.write(record).catch(() => undefined);
    }
    return { records, halves, unreadable };
  }

  async write(record: NetworkRecord): Promise<void> {
    for (const dir of this.#dirs) {
      const path = join(dir, record.owner);
      await writeFile(path + TEMPORARY_SUFFIX, textOf(record), { mode: 0o600 });
      await rename(path + TEMPORARY_SUFFIX, path);
    }
  }

  async remove(owner: string): Promise<void> {
    for (const dir of this.#dirs) await rm(join(dir, owner), { force: true });
  }
}

function textOf({ owner, sandbox, ports }: NetworkRecord): string {
  const record = { owner, sandbox, ports };
  return JSON.stringify({ ...record, checksum: checksumOf(record) });
}

/** Parses a record. Returns undefined if the text is damaged. Earlier versions wrote no checksum. */
function parseRecord(text: string, owner: string): NetworkRecord | undefined {
  try {
    const { checksum, ...read } = JSON.parse(text) as Partial<NetworkRecord> & {
      readonly checksum?: unknown;
    };
    if (read.owner !== owner || typeof read.sandbox?.namespacePath !== "string") return undefined;
    const record = { owner, sandbox: read.sandbox, ports: read.ports ?? [] };
    if (checksum === undefined) return Object.keys(read).length > RECORD_FIELDS ? undefined : record;
    return checksum === checksumOf(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

function checksumOf(record: NetworkRecord): string {
  return crc32(JSON.stringify(record)).toString(16).padStart(8, "0");
}
