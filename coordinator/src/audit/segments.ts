import { mkdir, open, readdir, readFile, truncate, unlink } from "node:fs/promises";
import { join } from "node:path";
import { type ChainHead, EMPTY_CHAIN, openEntry } from "@forage/common/audit-chain";

export interface Segment {
  readonly path: string;
  /** The sequence of the segment's first entry. */
  readonly first: number;
  bytes: number;
}

const NAME = /^([0-9]{16})\.jsonl$/;

/** Opens the directory. Returns its segments, oldest first, and the end of the chain. */
export async function openSegments(
  dir: string,
): Promise<{ readonly segments: Segment[]; readonly head: ChainHead; readonly isDamaged: boolean }> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const names = (await readdir(dir)).filter((name) => NAME.test(name)).sort();
  const segments = names.map((name): Segment => {
    return { path: join(dir, name), first: Number(NAME.exec(name)?.[1]), bytes: 0 };
  });
  const last = segments.at(-1);
  if (last === undefined) return { segments, head: EMPTY_CHAIN, isDamaged: false };
  const lines = await completeLines(last);
  const entry = openEntry(lines.at(-1) ?? "");
  if (entry !== undefined) return { segments, head: entry, isDamaged: false };
  if (lines.length > 0) {
    // The next entry starts a new chain, which a verification of the log reports.
    const head = { sequence: last.first + lines.length - 1, hash: EMPTY_CHAIN.hash };
    return { segments, head, isDamaged: true };
  }
  // The process ended before the first entry of the segment was complete.
  await unlink(last.path);
  return openSegments(dir);
}

/** Appends the text and syncs the file. After a failure the segment is unchanged. */
export async function appendTo(segment: Segment, text: string): Promise<void> {
  const file = await open(segment.path, "a", 0o600);
  try {
    // A failed write may have left a part of an earlier text.
    await file.truncate(segment.bytes);
    const bytes = Buffer.from(text);
    await file.writeFile(bytes);
    await file.datasync();
    segment.bytes += bytes.length;
  } finally {
    await file.close();
  }
}

/**
 * Returns the lines of a segment; empty if it was removed, or if its first entry could not be
 * written.
 */
export async function linesOf({ path }: Segment): Promise<string[]> {
  try {
    const bytes = await readFile(path);
    return bytes
      .subarray(0, bytes.lastIndexOf("\n") + 1)
      .toString()
      .split("\n")
      .slice(0, -1);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** Returns the complete lines, and removes an incomplete entry that the end of the process left. */
async function completeLines(segment: Segment): Promise<string[]> {
  const bytes = await readFile(segment.path);
  const end = bytes.lastIndexOf("\n") + 1;
  if (end < bytes.length) await truncate(segment.path, end);
  segment.bytes = end;
  return bytes.subarray(0, end).toString().split("\n").slice(0, -1);
}
