import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Entry } from "./entry.ts";

/** The written files, for the records of the package. */
export interface StagedFiles {
  readonly bytes: number;
  /** MD5 checksums by path, in the format of dpkg. */
  readonly sums: string;
}

/** Writes the entries below `dir`. */
export function stageEntries(dir: string, entries: readonly Entry[]): StagedFiles {
  let bytes = 0;
  const sums: string[] = [];
  for (const { path, mode, source } of entries) {
    const to = join(dir, path);
    mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
    if (source.type === "file") copyFileSync(source.path, to);
    else writeFileSync(to, source.type === "text" ? source.text : compress(source.text));
    chmodSync(to, mode);
    const content = readFileSync(to);
    bytes += content.length;
    sums.push(`${createHash("md5").update(content).digest("hex")}  ${path}\n`);
  }
  return { bytes, sums: sums.sort((a, b) => (a.slice(34) < b.slice(34) ? -1 : 1)).join("") };
}

/** Compresses the text without a name and time, so equal text gives equal bytes. */
function compress(text: string): Buffer {
  return gzipSync(text, { level: 9 });
}
