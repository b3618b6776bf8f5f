import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { messageOf } from "@forage/common/message-of";

/** The record of a connected namespace. Without a pod it is a spare one that has never been used. */
export interface SandboxRecord {
  readonly namespace: string;
  readonly address: string;
  /** The IPv6 address, if pods have IPv6. */
  readonly address6?: string;
  /** The name of the link's end on the host. */
  readonly hostInterface: string;
  readonly podUid?: string;
}

/** The content of the directory. */
export interface LoadedRecords {
  readonly records: readonly SandboxRecord[];
  /** Unreadable files by their network namespace, with the reason. */
  readonly damaged: ReadonlyMap<string, string>;
}

const FIELDS: ReadonlySet<string> = new Set(["namespace", "address", "address6", "hostInterface", "podUid"]);
const TEMPORARY_SUFFIX = ".tmp";

/**
 * Stores each pod's sandbox in one small file. The records survive the agent. Sandboxes don't survive a reboot, so the
 * files are not synced.
 */
export class SandboxRecords {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  pathOf(namespace: string): string {
    return join(this.#dir, namespace);
  }

  async write(record: SandboxRecord): Promise<void> {
    const path = this.pathOf(record.namespace);
    await writeFile(path + TEMPORARY_SUFFIX, textOf(record), { mode: 0o600 });
    await rename(path + TEMPORARY_SUFFIX, path);
  }

  async remove(namespace: string): Promise<void> {
    await rm(this.pathOf(namespace), { force: true });
  }

  /** Reads all records. Creates the directory if it is missing, and leaves unreadable files alone. */
  async load(): Promise<LoadedRecords> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const records: SandboxRecord[] = [];
    const damaged = new Map<string, string>();
    for (const name of await readdir(this.#dir)) {
      if (name.endsWith(TEMPORARY_SUFFIX)) {
        await rm(this.pathOf(name), { force: true });
        continue;
      }
      try {
        records.push(await this.#read(name));
      } catch (error) {
        damaged.set(name, messageOf(error));
      }
    }
    return { records, damaged };
  }

  /** Reads one record. Throws an error with the reason if it is damaged. */
  async #read(name: string): Promise<SandboxRecord> {
    const text = await readFile(this.pathOf(name), "utf8");
    const read: unknown = JSON.parse(text);
    if (!isRecord(read)) throw new Error("fields are missing");
    const { checksum, ...record } = read;
    if (record.namespace !== name) throw new Error(`it is about namespace ${record.namespace}`);
    // Earlier versions wrote no checksum. If the disk is full, the record is used without one.
    if (checksum === undefined && hasOnlyFields(record)) await this.write(record).catch(() => undefined);
    else if (text !== textOf(record)) throw new Error("its checksum is wrong");
    return record;
  }
}

/**
 * Returns the record's text with a checksum. Without it, a flipped bit in an address would make the pod's sandbox
 * appear lost.
 */
function textOf(record: SandboxRecord): string {
  const checksum = crc32(JSON.stringify(record)).toString(16).padStart(8, "0");
  return JSON.stringify({ ...record, checksum });
}

function hasOnlyFields(record: SandboxRecord): boolean {
  return Object.keys(record).every((name) => FIELDS.has(name));
}

function isRecord(value: unknown): value is SandboxRecord & { readonly checksum?: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const { namespace, address, address6, hostInterface, podUid } = value as Partial<SandboxRecord>;
  const texts = [namespace, address, address6 ?? "", hostInterface, podUid ?? ""];
  return texts.every((text) => typeof text === "string");
}
