import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { syncDirectory } from "../journal/durable-files.ts";
import { codeOf } from "./mounts.ts";
import { VolumeError } from "./volumes.ts";

const FILE = "claim.json";
const FORMAT = 1;

export interface ClaimRecord {
  /** The claim's limit in bytes. Undefined: no limit. */
  readonly capacityBytes?: number | undefined;
}

export type FoundRecord =
  | { readonly type: "sound"; readonly record: ClaimRecord }
  | { readonly type: "missing" }
  | { readonly type: "damaged"; readonly reason: string };

export function claimRecordPath(home: string): string {
  return join(home, FILE);
}

/**
 * Reads the record of the claim in `home`. @throws VolumeError DAMAGED if reading from disk fails, or if a newer agent
 * wrote the record in another format.
 */
export async function readClaimRecord(home: string): Promise<FoundRecord> {
  const path = claimRecordPath(home);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return { type: "missing" };
    throw new VolumeError("DAMAGED", `${path} can't be read`, { cause });
  }
  const read = parse(text);
  if (read === undefined) return { type: "damaged", reason: "it is not a claim's record" };
  const { format, capacityBytes, checksum } = read;
  if (checksum !== undefined && checksum !== checksumOf(format, capacityBytes))
    return { type: "damaged", reason: "its checksum is wrong" };
  if (format !== FORMAT) throw new VolumeError("DAMAGED", `${path} has the unknown format ${format}`);
  return { type: "sound", record: { capacityBytes } };
}

/** Writes the record. Resolves when it is on disk. */
export async function writeClaimRecord(home: string, { capacityBytes }: ClaimRecord): Promise<void> {
  const record: StoredRecord = {
    format: FORMAT,
    ...(capacityBytes !== undefined && { capacityBytes }),
    checksum: checksumOf(FORMAT, capacityBytes),
  };
  const path = claimRecordPath(home);
  await writeFile(`${path}.new`, JSON.stringify(record), { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
  await syncDirectory(home);
}

interface StoredRecord {
  readonly format: number;
  readonly capacityBytes?: number;
  /** Older agents wrote no checksum. */
  readonly checksum?: string;
}

function checksumOf(format: number, capacityBytes: number | undefined): string {
  return crc32(`${format} ${capacityBytes ?? ""}`)
    .toString(16)
    .padStart(8, "0");
}

/**
 * Parses a record. Returns undefined if it is damaged. An unknown key counts as damage, because only a newer format has
 * other keys.
 */
function parse(text: string): StoredRecord | undefined {
  try {
    const read: unknown = JSON.parse(text);
    if (typeof read !== "object" || read === null || !("format" in read)) return undefined;
    const { format, capacityBytes, checksum, ...others } = read as Partial<
      Record<keyof StoredRecord, unknown>
    >;
    if (typeof format !== "number") return undefined;
    if (format === FORMAT && Object.keys(others).length > 0) return undefined;
    if (capacityBytes !== undefined && typeof capacityBytes !== "number") return undefined;
    if (checksum !== undefined && typeof checksum !== "string") return undefined;
    return {
      format,
      ...(capacityBytes !== undefined && { capacityBytes }),
      ...(checksum !== undefined && { checksum }),
    };
  } catch {
    return undefined;
  }
}
