import { decodeRecord, encodeRecord, RECORD_KIND } from "./record-frame.ts";

export const INDEX_FILE = "index";

/** The file whose replacement commits a change: it names the current pod files. */
export interface JournalIndex {
  /** Empty before the first snapshot. */
  readonly clusterId: string;
  /** The coordinator's epoch. It increases when an operator restores older data. */
  readonly epoch: bigint;
  readonly revision: bigint;
  /** The lineage of the coordinator's data to which the revision belongs. Absent if unknown. */
  readonly lineage?: string | undefined;
  /**
   * A number that grows with each commit. It is part of pod files' names, so that no file in use is ever overwritten.
   */
  readonly generation: number;
  /** The generation of each pod's file, by uid. */
  readonly pods: ReadonlyMap<string, number>;
}

export const EMPTY_INDEX: JournalIndex = {
  clusterId: "",
  epoch: 0n,
  revision: 0n,
  generation: 0,
  pods: new Map(),
};

export function encodeIndex(index: JournalIndex): Buffer {
  const text = JSON.stringify({
    clusterId: index.clusterId,
    epoch: String(index.epoch),
    revision: String(index.revision),
    lineage: index.lineage,
    generation: index.generation,
    pods: [...index.pods],
  });
  return encodeRecord(RECORD_KIND.index, Buffer.from(text));
}

/** Decodes an index. Throws an error with the reason if it is invalid. */
export function decodeIndex(bytes: Buffer): JournalIndex {
  const read: unknown = JSON.parse(decodeRecord(RECORD_KIND.index, bytes).toString());
  if (!isStoredIndex(read)) throw new Error("fields are missing");
  return { ...read, epoch: BigInt(read.epoch), revision: BigInt(read.revision), pods: new Map(read.pods) };
}

export function podFileName(uid: string, generation: number): string {
  return `${uid}.${generation}.pod`;
}

export function parsePodFileName(name: string): { uid: string; generation: number } | undefined {
  const match = /^(.+)\.(\d{1,15})\.pod$/.exec(name);
  return match?.[1] === undefined ? undefined : { uid: match[1], generation: Number(match[2]) };
}

interface StoredIndex {
  readonly clusterId: string;
  readonly epoch: string;
  readonly revision: string;
  readonly lineage?: string;
  readonly generation: number;
  readonly pods: readonly [string, number][];
}

// The checksum already guarantees the bytes, so this only detects a different format.
function isStoredIndex(value: unknown): value is StoredIndex {
  if (typeof value !== "object" || value === null) return false;
  const { clusterId, epoch, revision, lineage, generation, pods } = value as Partial<StoredIndex>;
  return (
    typeof clusterId === "string" &&
    typeof epoch === "string" &&
    typeof revision === "string" &&
    (lineage === undefined || typeof lineage === "string") &&
    typeof generation === "number" &&
    Array.isArray(pods)
  );
}
