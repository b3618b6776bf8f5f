import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import { randomOf } from "@forage/common/random";
import { secondsOf } from "./rounds.ts";

const MEGABYTE = 1_000_000;
/** Between two backups one in this number of files changes, and one in ten times this number is new. */
const ONE_CHANGED_IN = 200;
const NEW_BYTES = 4_000;
/** The sizes of chunks: 16 KiB at least, 64 KiB on average above that, 256 KiB at most. */
const MIN_CHUNK = 16 * 1024;
const MAX_CHUNK = 256 * 1024;
const BOUNDARY_MASK = 0xffff << 16;
const TAR = ["--create", "--file=-", "--format=posix", "--sort=name", "--numeric-owner"];

/**
 * Compares ways to store a backup when the previous one is already in the store: a whole archive, chunks by content,
 * the changed files only, and a difference of archives. A prototype for a decision; nothing else uses it.
 */
export async function measureDedupe(tree: string): Promise<Readonly<Record<string, number>>> {
  const work = mkdtempSync(join(tmpdir(), "forage-dedupe-"));
  try {
    const content = join(work, "content");
    await shell('cp -a -- "$1" "$2"', [tree, content]);
    const index = join(work, "index");
    const archives = [join(work, "first.tar.zst"), join(work, "second.tar.zst")] as const;
    const whole =
      'tar --create --file=- --format=posix --sort=name --numeric-owner . | zstd -q -3 -T1 -f -o "$1"';
    const changed =
      'tar --create --file=- --format=posix --sort=name --numeric-owner --listed-incremental="$2" . | zstd -q -3 -T1 -f -o "$1"';
    await shell(whole, [archives[0]], content);
    await shell(changed, [join(work, "base"), index], content);
    const known = new Set<string>();
    await addChunks(content, known);
    change(content);

    const wholeSeconds = await secondsOf(() => shell(whole, [archives[1]], content));
    const chunks = { newBytes: 0, allBytes: 0 };
    const chunkSeconds = await secondsOf(async () => Object.assign(chunks, await addChunks(content, known)));
    const increment = join(work, "increment");
    const incrementSeconds = await secondsOf(() => shell(changed, [increment, index], content));
    const patch = join(work, "patch");
    const patchSeconds = await secondsOf(() =>
      shell(
        'zstd -q -d -f -o "$3.old" "$1"; zstd -q -d -f -o "$3.new" "$2"; zstd -q -3 -T1 --long=31 --patch-from="$3.old" -f -o "$3" "$3.new"',
        [archives[0], archives[1], patch],
      ),
    );
    const size = (path: string): number => statSync(path).size / MEGABYTE;
    return {
      "content as a tar stream (MB)": chunks.allBytes / MEGABYTE,
      "whole archive (MB)": size(archives[1]),
      "whole archive (s)": wholeSeconds,
      "new chunks, compressed (MB)": chunks.newBytes / MEGABYTE,
      "new chunks (s)": chunkSeconds,
      "changed files only (MB)": size(increment),
      "changed files only (s)": incrementSeconds,
      "difference of the archives (MB)": size(patch),
      "difference of the archives, with unpacking both (s)": patchSeconds,
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Changes files as a day's work does. */
function change(content: string): void {
  const random = randomOf(1);
  const files = readdirSync(content, { recursive: true, withFileTypes: true }).filter((it) => it.isFile());
  for (const { parentPath, name } of files) {
    if (random.below(ONE_CHANGED_IN) === 0)
      appendFileSync(join(parentPath, name), `// changed ${random.next()}\n`);
    if (random.below(10 * ONE_CHANGED_IN) === 0)
      writeFileSync(join(parentPath, `${name}.new`), `${random.next()}`.repeat(NEW_BYTES / 20));
  }
}

/** Cuts the tar stream into chunks by a rolling hash, and compresses the new ones. */
async function addChunks(
  content: string,
  known: Set<string>,
): Promise<{ readonly newBytes: number; readonly allBytes: number }> {
  const gear = Uint32Array.from({ length: 256 }, (_, byte) =>
    createHash("sha256").update(Buffer.of(byte)).digest().readUInt32LE(0),
  );
  let [newBytes, allBytes, hash] = [0, 0, 0];
  let parts: Buffer[] = [];
  let length = 0;
  const end = (): void => {
    const chunk = Buffer.concat(parts);
    [parts, length, hash] = [[], 0, 0];
    const digest = createHash("sha256").update(chunk).digest("base64");
    if (known.has(digest)) return;
    known.add(digest);
    newBytes += zstdCompressSync(chunk, { params: { [constants.ZSTD_c_compressionLevel]: 3 } }).byteLength;
  };
  const tar = spawn("tar", [...TAR, "."], { cwd: content, stdio: ["ignore", "pipe", "inherit"] });
  for await (const data of tar.stdout as AsyncIterable<Buffer>) {
    allBytes += data.byteLength;
    let from = 0;
    for (let at = 0; at < data.byteLength; at++) {
      hash = ((hash << 1) + (gear[data[at] ?? 0] ?? 0)) | 0;
      length += 1;
      if (length < MIN_CHUNK || ((hash & BOUNDARY_MASK) !== 0 && length < MAX_CHUNK)) continue;
      parts.push(data.subarray(from, at + 1));
      from = at + 1;
      end();
    }
    if (from < data.byteLength) parts.push(data.subarray(from));
  }
  if (length > 0) end();
  return { newBytes, allBytes };
}

async function shell(script: string, args: readonly string[], cwd = "/"): Promise<void> {
  const child = spawn("bash", ["-o", "pipefail", "-ec", script, "bash", ...args], {
    cwd,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`exit code ${code}: ${script}`);
}
