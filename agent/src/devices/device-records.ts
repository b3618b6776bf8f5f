import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Holding } from "./assign-units.ts";

const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,199}$/;

/**
 * Which pod has which units: `<dir>/<pod uid>`, JSON. It is there to survive the agent; containers don't survive the host, so nothing is synced.
 */
export class DeviceRecords {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Loads the records. Creates the directory if it is missing. Removes records that can't be read. */
  async load(): Promise<Map<string, readonly Holding[]>> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const records = new Map<string, readonly Holding[]>();
    for (const name of await readdir(this.#dir)) {
      const holdings = await this.#read(name);
      if (holdings === undefined) await rm(join(this.#dir, name), { force: true });
      else records.set(name, holdings);
    }
    return records;
  }

  async write(podUid: string, holdings: readonly Holding[]): Promise<void> {
    const path = this.#path(podUid);
    await writeFile(`${path}.tmp`, JSON.stringify(holdings), { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  }

  async remove(podUid: string): Promise<void> {
    await rm(this.#path(podUid), { force: true });
  }

  #path(podUid: string): string {
    if (!SAFE_NAME.test(podUid)) throw new Error(`${JSON.stringify(podUid)} can't be a pod's uid`);
    return join(this.#dir, podUid);
  }

  async #read(name: string): Promise<readonly Holding[] | undefined> {
    if (!SAFE_NAME.test(name)) return undefined;
    try {
      const read: unknown = JSON.parse(await readFile(join(this.#dir, name), "utf8"));
      return Array.isArray(read) && read.every(isHolding) ? read : undefined;
    } catch {
      return undefined;
    }
  }
}

function isHolding(value: unknown): value is Holding {
  if (typeof value !== "object" || value === null) return false;
  const { container, init, resource, unit } = value as Partial<Holding>;
  return typeof init === "boolean" && [container, resource, unit].every((it) => typeof it === "string");
}
