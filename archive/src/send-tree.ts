import type { Stats } from "node:fs";
import { ArchiveError } from "./archive-error.ts";
import type { Directory } from "./directory.ts";
import { CHUNK_BYTES, DEPTH_MAX, PATH_MAX_BYTES } from "./limits.ts";
import type { ResolvedPath } from "./resolve.ts";
import { encodeHeader, paddingFor, TAR_END, type TarHeader } from "./tar-header.ts";

export interface SendOptions {
  /** The name of the file or directory in the archive. */
  readonly name: string;
  /** Called for each skipped entry. */
  readonly skipped: (path: string, why: string) => void;
}

/** File systems whose files the kernel generates on reading: endless, or without a size. */
const KERNEL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0x9fa0, // proc
  0x62656572, // sysfs
  0x27e0eb, // cgroup
  0x63677270, // cgroup2
  0x64626720, // debugfs
  0x74726163, // tracefs
]);

/**
 * Yields one file or directory as a tar stream, in chunks of at most 64 KiB. Keeps only the directories of the current
 * path open. Throws NOT_FOUND and FAILED.
 */
export async function* sendTree(place: ResolvedPath, options: SendOptions): AsyncGenerator<Buffer> {
  const { directory, name, stats } = place;
  const sender = new Sender(options);
  if (name === undefined) yield* sender.directory(directory, options.name, 0);
  else if (stats === undefined) throw new ArchiveError("NOT_FOUND", `${name} does not exist`);
  else {
    const problem = sender.problem(stats);
    if (problem !== undefined) throw new ArchiveError("REFUSED", `${name} ${problem}`);
    yield* sender.entry(directory, name, options.name, stats, 0);
  }
  yield TAR_END;
}

class Sender {
  readonly #options: SendOptions;

  constructor(options: SendOptions) {
    this.#options = options;
  }

  /** Returns the reason why an entry is not copied. */
  problem(stats: Stats): string | undefined {
    if (stats.isFile() || stats.isDirectory() || stats.isSymbolicLink()) return undefined;
    const kind = stats.isFIFO() ? "pipe" : stats.isSocket() ? "socket" : "device";
    return `is a ${kind}, which can't be copied`;
  }

  async *entry(
    parent: Directory,
    name: string,
    path: string,
    stats: Stats,
    depth: number,
  ): AsyncGenerator<Buffer> {
    if (stats.isSymbolicLink()) {
      const target = await parent.readLink(name);
      yield encodeHeader({ ...described(path, stats), type: "link", mode: 0o777, target });
      return;
    }
    if (!stats.isDirectory()) return yield* this.#file(parent, name, path);
    const directory = await parent.enter(name);
    try {
      yield* this.directory(directory, path, depth, stats);
    } finally {
      await directory.close();
    }
  }

  async *directory(directory: Directory, path: string, depth: number, stats?: Stats): AsyncGenerator<Buffer> {
    const mode = stats === undefined ? { mode: 0o755, modifiedMs: 0 } : {};
    const own = stats === undefined ? { ...EMPTY, path } : described(path, stats);
    yield encodeHeader({ ...own, ...mode, type: "directory" });
    for await (const { name } of directory.entries()) {
      yield* this.#child(directory, name, `${path}/${name}`, depth + 1);
    }
  }

  async *#child(parent: Directory, name: string, path: string, depth: number): AsyncGenerator<Buffer> {
    const { skipped } = this.#options;
    if (depth > DEPTH_MAX || Buffer.byteLength(path) > PATH_MAX_BYTES)
      return skipped(path, `is more than ${DEPTH_MAX} directories deep, or its name is too long`);
    const stats = await parent.stat(name);
    if (stats === undefined) return skipped(path, "no longer exists, or its name is not UTF-8");
    const problem = this.problem(stats) ?? (await this.#kernels(parent, name, stats));
    if (problem !== undefined) return skipped(path, problem);
    try {
      yield* this.entry(parent, name, path, stats, depth);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Errors before the entry's first byte skip the entry. Later ones can only fail the whole copy.
      if (code !== "EACCES" && code !== "EPERM" && code !== "ENOENT" && code !== "ELOOP") throw error;
      skipped(path, code === "ENOENT" ? "no longer exists" : "may not be read");
    }
  }

  async #kernels(parent: Directory, name: string, stats: Stats): Promise<string | undefined> {
    if (!stats.isDirectory()) return undefined;
    const directory = await parent.enter(name).catch(() => undefined);
    if (directory === undefined) return undefined;
    try {
      const made = KERNEL_FILE_SYSTEMS.has(await directory.fileSystem());
      return made ? "is made by the kernel, not kept on a disk" : undefined;
    } finally {
      await directory.close();
    }
  }

  async *#file(parent: Directory, name: string, path: string): AsyncGenerator<Buffer> {
    const file = await parent.openFile(name);
    try {
      const stats = await file.stat();
      if (!stats.isFile()) return this.#options.skipped(path, "is no longer a file");
      yield encodeHeader({ ...described(path, stats), type: "file", sizeBytes: stats.size });
      for (let left = stats.size; left > 0; ) {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(Math.min(left, CHUNK_BYTES)));
        if (bytesRead === 0) throw new ArchiveError("FAILED", `${path} became shorter while it was read`);
        left -= bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
      yield paddingFor(stats.size);
    } finally {
      await file.close();
    }
  }
}

const EMPTY: TarHeader = { path: "", type: "other", mode: 0, modifiedMs: 0, sizeBytes: 0, target: "" };

function described(path: string, { mode, mtimeMs }: Stats): TarHeader {
  return { ...EMPTY, path, mode: mode & 0o7777, modifiedMs: mtimeMs };
}
