import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";

/** An archive in the content store. */
export interface StoredArchive {
  readonly object: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly storedMs: number;
}

/** The part of the content store that decisions need. */
export interface Archives {
  /** Follows `@` in snapshot URLs. */
  readonly name: string;
  /** Returns undefined unless the object exists. Throws if the store can't be reached. */
  stat(object: string): Promise<StoredArchive | undefined>;
  /** Returns the name of the archive that a transfer makes. */
  nameOf(archive: {
    readonly owner: string;
    readonly metaId: string;
    readonly instanceId: string;
    readonly transfer: string;
  }): string;
}

export function archiveNameOf(archives: Archives, { id, metadata }: InstanceRecord, transfer: string): string {
  return archives.nameOf({
    owner: metadata?.owner ?? "",
    metaId: metadata?.metaId ?? "",
    instanceId: id,
    transfer,
  });
}

export function urlOf(archives: Archives, object: string): string {
  return `${object}@${archives.name}`;
}
