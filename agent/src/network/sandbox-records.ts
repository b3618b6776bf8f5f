import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A namespace that is wired. Without a pod it is a spare one, never used so far. */
export interface SandboxRecord {
  readonly namespace: string;
  readonly address: string;
  /** Where pods have IPv6. */
  readonly address6?: string;
  /** The host's end of its link. */
  readonly hostInterface: string;
  readonly podUid?: string;
}

/**
 * Which pod has which namespace, one small file per namespace. It is there to survive the agent; the namespaces
 * don't survive the host, so nothing is synced.
 */
export class SandboxRecords {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  async write(record: SandboxRecord): Promise<void> {
    const path = join(this.#dir, record.namespace);
    await writeFile(`${path}.tmp`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  }

  async remove(namespace: string): Promise<void> {
    await rm(join(this.#dir, namespace), { force: true });
  }

  /** Makes the directory if there is none. What can't be read is removed: its namespace counts as nobody's. */
  async load(): Promise<SandboxRecord[]> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const records: SandboxRecord[] = [];
    for (const name of await readdir(this.#dir)) {
      const record = await this.#read(name);
      if (record === undefined) await rm(join(this.#dir, name), { force: true });
      else records.push(record);
    }
    return records;
  }

  async #read(name: string): Promise<SandboxRecord | undefined> {
    try {
      const read: unknown = JSON.parse(await readFile(join(this.#dir, name), "utf8"));
      return isRecord(read) && read.namespace === name ? read : undefined;
    } catch {
      return undefined;
    }
  }
}

function isRecord(value: unknown): value is SandboxRecord {
  if (typeof value !== "object" || value === null) return false;
  const { namespace, address, address6, hostInterface, podUid } = value as Partial<SandboxRecord>;
  const texts = [namespace, address, address6 ?? "", hostInterface, podUid ?? ""];
  return texts.every((text) => typeof text === "string");
}
