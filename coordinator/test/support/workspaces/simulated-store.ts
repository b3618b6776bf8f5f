import type { Random } from "@forage/common/random";
import type { TransferOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { StoredObject } from "../../../src/workspaces/content/content-store.ts";

/**
 * The version of a workspace's content: the number of changes by containers, and of earlier losses
 * of the node's disk.
 */
export interface ContentVersion {
  readonly changes: number;
  readonly disk: number;
}

interface Kept {
  readonly stored: StoredObject;
  readonly version: ContentVersion;
}

/** A content store that knows the content version of each archive. */
export class SimulatedStore {
  readonly #objects = new Map<string, Kept>();

  put({ object }: TransferOrder, version: ContentVersion, nowMs: number): StoredObject {
    const sizeBytes = 10 + version.changes;
    const stored = { object, sizeBytes, sha256: `sha-${version.disk}-${version.changes}`, storedMs: nowMs };
    this.#objects.set(object, { stored, version });
    return stored;
  }

  stat(object: string): StoredObject | undefined {
    return this.#objects.get(object)?.stored;
  }

  versionOf(object: string): ContentVersion | undefined {
    return this.#objects.get(object)?.version;
  }

  versions(): ContentVersion[] {
    return [...this.#objects.values()].map(({ version }) => version);
  }

  /** Loses or damages one of the objects. Returns false if there is none. */
  spoil(objects: readonly string[], random: Random): boolean {
    const present = objects.filter((object) => this.#objects.has(object));
    if (present.length === 0) return false;
    const object = random.pick(present);
    const kept = this.#objects.get(object);
    this.#objects.delete(object);
    if (kept === undefined || random.chance(0.4)) return true;
    const { stored } = kept;
    const damaged = random.chance(0.5)
      ? { ...stored, sizeBytes: stored.sizeBytes - 1 }
      : { ...stored, sha256: "damaged" };
    this.#objects.set(object, { ...kept, stored: damaged });
    return true;
  }
}
