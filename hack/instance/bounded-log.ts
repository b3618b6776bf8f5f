import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeFileSync } from "node:fs";

// Enough for the causes of a failure, and small enough that a faulty program can't fill the disk.
const MAX_BYTES = 16 * 1024 * 1024;
const KEPT_BYTES = 4 * 1024 * 1024;

/**
 * Empties a log that grew too long, after copying its end to `<path>.1`. Writers in append mode continue undisturbed.
 */
export function boundLog(path: string, limits = { maxBytes: MAX_BYTES, keptBytes: KEPT_BYTES }): void {
  let file: number;
  try {
    file = openSync(path, "r+");
  } catch {
    return;
  }
  try {
    const { size } = fstatSync(file);
    if (size <= limits.maxBytes) return;
    const end = Buffer.alloc(limits.keptBytes);
    const read = readSync(file, end, 0, end.length, size - end.length);
    writeFileSync(`${path}.1`, end.subarray(0, read), { mode: 0o640 });
    ftruncateSync(file, 0);
  } finally {
    closeSync(file);
  }
}
