import { type FileHandle, open, rename, rm, statfs, truncate } from "node:fs/promises";
import { runProgram } from "../programs/run-program.ts";
import { streamsDir } from "./stream-places.ts";

/**
 * The ways to remove the head of a file to which another process appends. `collapse` (ext4, xfs): the kernel removes it
 * in one step under the writers' lock; no data is lost, and offsets decrease. `punch` (also tmpfs, btrfs, zfs): its
 * blocks are freed; no data is lost, and the file's size continues to grow. `truncate` (all others): the file is
 * emptied after its last byte was copied; data written in between, about 50 µs, is lost.
 */
export type TrimMode = "collapse" | "punch" | "truncate";

export interface TrimResult {
  readonly mode: TrimMode;
  /** The number of bytes by which offsets have decreased. */
  readonly shiftBytes: number;
  /** The offset of the first remaining byte. The range before it is a hole. */
  readonly startOffset: number;
}

const MODES: readonly TrimMode[] = ["collapse", "punch", "truncate"];
// If the block size is unknown, this minimum is always valid.
const BLOCK_BYTES_MIN = 4096;
const COPY_BYTES = 256 * 1024;
const LINE_BREAK = 0x0a;
const FALLOCATE_TIMEOUT_MS = 30_000;
// fallocate writes at most one line.
const FALLOCATE_OUTPUT_BYTES_MAX = 4_096;

/**
 * Removes everything before the last block of `path`, after appending the newest `keepBytes` of it to `rotatedPath`.
 * Uses the first mode that works, starting with `from`. Returns undefined if the file is smaller than a block.
 */
export async function trimHead(
  path: string,
  rotatedPath: string,
  options: { readonly startOffset: number; readonly keepBytes: number; readonly from: TrimMode },
): Promise<TrimResult | undefined> {
  const { startOffset, keepBytes, from } = options;
  const blockBytes = Math.max(BLOCK_BYTES_MIN, (await statfs(path)).bsize);
  await using file = await open(path, "r");
  const { size } = await file.stat();
  // The end of the file itself can't be collapsed.
  const cut = Math.floor((size - 1) / blockBytes) * blockBytes;
  if (cut <= startOffset) return undefined;
  const partial = `${rotatedPath}.partial`;
  await using kept = await open(partial, "w", 0o600);
  await copy(
    file,
    kept,
    await lineFrom(file, Math.max(startOffset, cut - keepBytes), startOffset, rotatedPath),
    cut,
  );
  for (const mode of MODES.slice(MODES.indexOf(from))) {
    if (mode === "truncate") return await empty(path, file, kept, cut, () => rename(partial, rotatedPath));
    // Renamed before the head is removed: after a crash in between, lines appear twice instead of never.
    await rename(partial, rotatedPath).catch(ignoreMissing);
    if (await fallocate(mode, path, cut)) {
      return mode === "collapse"
        ? { mode, shiftBytes: cut, startOffset: 0 }
        : { mode, shiftBytes: 0, startOffset: cut };
    }
    // The renamed file is still open, and a truncation would continue with it.
  }
  return undefined;
}

/** Returns the offset at which data begins in a file whose head may be a hole. Logs contain no blocks of zeros. */
export async function findStart(path: string): Promise<number> {
  await using file = await open(path, "r");
  const { size, blocks } = await file.stat();
  if (blocks * 512 >= size) return 0;
  const block = Buffer.alloc(BLOCK_BYTES_MIN);
  const isHole = async (index: number) => {
    const { bytesRead } = await file.read(block, 0, block.length, index * block.length);
    return block.subarray(0, bytesRead).every((byte) => byte === 0);
  };
  let low = 0;
  let high = Math.floor(size / block.length);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isHole(middle)) low = middle + 1;
    else high = middle;
  }
  return low * block.length;
}

/** Returns the offset of the first line that begins at or after `offset`. The kept part can begin there. */
async function lineFrom(
  file: FileHandle,
  offset: number,
  startOffset: number,
  rotatedPath: string,
): Promise<number> {
  const before = offset > startOffset ? offset - 1 : undefined;
  if (before === undefined && !(await endsWithinLine(rotatedPath))) return offset;
  const from = before ?? offset;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(COPY_BYTES), 0, COPY_BYTES, from);
  const lineBreak = buffer.subarray(0, bytesRead).indexOf(LINE_BREAK);
  return lineBreak < 0 ? offset : from + lineBreak + 1;
}

async function endsWithinLine(path: string): Promise<boolean> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
    return bytesRead === 1 && buffer[0] !== LINE_BREAK;
  } catch (error) {
    ignoreMissing(error as NodeJS.ErrnoException);
    return false;
  }
}

async function copy(from: FileHandle, to: FileHandle, begin: number, end: number): Promise<number> {
  const buffer = Buffer.alloc(COPY_BYTES);
  let offset = begin;
  while (offset < end) {
    const { bytesRead } = await from.read(buffer, 0, Math.min(buffer.length, end - offset), offset);
    if (bytesRead === 0) break;
    await to.write(buffer, 0, bytesRead);
    offset += bytesRead;
  }
  return offset;
}

async function empty(
  path: string,
  file: FileHandle,
  kept: FileHandle,
  copied: number,
  publish: () => Promise<void>,
): Promise<TrimResult> {
  await publish().catch(ignoreMissing);
  let offset = copied;
  for (let end = offset + 1; end > offset; ) {
    offset = await copy(file, kept, offset, Number.MAX_SAFE_INTEGER);
    end = (await file.stat()).size;
  }
  await truncate(path, 0);
  return { mode: "truncate", shiftBytes: offset, startOffset: 0 };
}

async function fallocate(mode: "collapse" | "punch", path: string, length: number): Promise<boolean> {
  const option = mode === "collapse" ? "--collapse-range" : "--punch-hole";
  const result = await runProgram("fallocate", [option, "--offset=0", `--length=${length}`, "--", path], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    timeoutMs: FALLOCATE_TIMEOUT_MS,
    outputBytesMax: FALLOCATE_OUTPUT_BYTES_MAX,
  });
  return result.exitCode === 0;
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}

/** Removes a log with its rotated part. */
export async function removeLog(path: string, rotatedPath: string): Promise<void> {
  for (const it of [path, rotatedPath, `${rotatedPath}.partial`]) await rm(it, { force: true });
  // Removed last, because its existence decides how the other files are read.
  await rm(streamsDir(path), { recursive: true, force: true });
}
