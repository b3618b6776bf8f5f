import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { DeviceAssignment } from "./assign-units.ts";

const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,199}$/;

export interface LoadedRecords {
  readonly held: Map<string, readonly DeviceAssignment[]>;
  /** Paths of unreadable records by pod uid. */
  readonly damaged: ReadonlyMap<string, string>;
}

/**
 * Stores the device units assigned to each pod, as JSON in `<dir>/<pod uid>`. The records survive the agent. Containers
 * don't survive a reboot, so the files are not synced.
 */
export class DeviceRecords {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Loads the records. Creates the directory if it is missing. */
  async load(): Promise<LoadedRecords> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const held = new Map<string, readonly DeviceAssignment[]>();
    const damaged = new Map<string, string>();
    for (const name of await readdir(this.#dir)) {
      const path = join(this.#dir, name);
      // The remains of an interrupted write.
      if (!SAFE_NAME.test(name)) await rm(path, { recursive: true, force: true });
      else {
        const holdings = await readHoldings(path);
        if (holdings === undefined) damaged.set(name, path);
        else held.set(name, holdings);
      }
    }
    return { held, damaged };
  }

  /** Returns the path of the pod's record, which may not exist. */
  pathOf(podUid: string): string {
    if (!SAFE_NAME.test(podUid)) throw new Error(`${JSON.stringify(podUid)} can't be a pod's uid`);
    return join(this.#dir, podUid);
  }

  async write(podUid: string, holdings: readonly DeviceAssignment[]): Promise<void> {
    const path = this.pathOf(podUid);
    const json = JSON.stringify(holdings);
    await writeFile(`${path}.tmp`, `${json}\n${checksumOf(json)}`, { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  }

  async remove(podUid: string): Promise<void> {
    await rm(this.pathOf(podUid), { recursive: true, force: true });
  }
}

/** Reads a record. Returns undefined if it is damaged. */
async function readHoldings(path: string): Promise<readonly DeviceAssignment[] | undefined> {
  try {
    const text = await readFile(path, "utf8");
    const [json = "", checksum] = text.split("\n");
    // Older agents wrote no checksum.
    if (checksum !== undefined && checksum !== checksumOf(json)) return undefined;
    const read: unknown = JSON.parse(json);
    return Array.isArray(read) && read.every(isHolding) ? read : undefined;
  } catch {
    return undefined;
  }
}

function checksumOf(json: string): string {
  return crc32(json).toString(16).padStart(8, "0");
}

function isHolding(value: unknown): value is DeviceAssignment {
  if (typeof value !== "object" || value === null) return false;
  const { container, init, resource, unit } = value as Partial<DeviceAssignment>;
  return typeof init === "boolean" && [container, resource, unit].every((it) => typeof it === "string");
}
