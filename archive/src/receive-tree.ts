import type { FileHandle } from "node:fs/promises";
import { ArchiveError } from "./archive-error.ts";
import type { Directory } from "./directory.ts";
import { CHUNK_BYTES, DEPTH_MAX, PATH_MAX_BYTES } from "./limits.ts";
import { readTar, type TarEntry } from "./read-tar.ts";
import type { TarHeader } from "./tar-header.ts";

export interface ReceiveOptions {
  /** The directory that receives the file or directory, and its name there. Undefined: the name in the archive. */
  readonly into: Directory;
  readonly name?: string | undefined;
  /** Returns an unpredictable name of at least 8 letters or digits. */
  readonly randomName: () => string;
  /** Whether links may have targets outside the archive. */
  readonly links: "any" | "within";
  /** Called for each skipped entry. */
  readonly skipped: (path: string, why: string) => void;
}

/** Permission bits only, because a foreign file must not run with its owner's rights. */
const MODE_BITS = 0o777;
const NOTHING: Buffer = Buffer.alloc(CHUNK_BYTES);

/**
 * Writes a tar stream that contains one file, or one directory with its content. Existing files are replaced as a
 * whole, and existing directories are merged. Writes only through directory handles, and never through a link. Throws
 * NOT_TAR, REFUSED and FAILED.
 */
export async function receiveTree(
  chunks: AsyncIterable<Uint8Array>,
  options: ReceiveOptions,
): Promise<{ readonly entries: number; readonly bytes: number }> {
  const receiver = new Receiver(options);
  let [entries, bytes] = [0, 0];
  try {
    for await (const entry of readTar(chunks)) {
      await receiver.write(entry);
      entries += 1;
      bytes += entry.header.sizeBytes;
    }
    if (entries === 0) throw new ArchiveError("NOT_TAR", "the archive is empty");
    await receiver.finish();
    return { entries, bytes };
  } finally {
    await receiver.close();
  }
}

interface Level {
  readonly name: string;
  readonly directory: Directory;
  readonly header: TarHeader;
}

class Receiver {
  readonly #options: ReceiveOptions;
  /** The directories from the top to that of the last entry. */
  readonly #levels: Level[] = [];
  #top: string | undefined;

  constructor(options: ReceiveOptions) {
    this.#options = options;
  }

  async write({ header, content }: TarEntry): Promise<void> {
    const { path } = header;
    const parts = partsOf(header.type === "directory" ? path.replace(/\/$/, "") : path);
    this.#top ??= parts[0];
    if (parts[0] !== this.#top)
      throw new ArchiveError("REFUSED", `the archive holds ${path} besides ${this.#top}`);
    await this.#ascend(parts);
    const parent = this.#levels.at(-1)?.directory ?? this.#options.into;
    const name = parts.length === 1 ? (this.#options.name ?? parts[0] ?? "") : (parts.at(-1) ?? "");
    switch (header.type) {
      case "directory":
        this.#levels.push({
          name: parts.at(-1) ?? "",
          directory: await this.#enter(parent, name, path),
          header,
        });
        return;
      case "file":
        return this.#replace(parent, name, path, (temporary) =>
          writeFile(parent, temporary, header, content),
        );
      case "link":
        if (this.#options.links === "within" && !staysWithin(parts, header.target))
          return this.#options.skipped(
            path,
            `is a link that leads out of what is copied, to ${header.target}`,
          );
        return this.#replace(parent, name, path, (temporary) => parent.makeLink(temporary, header.target));
      case "other":
        return this.#options.skipped(path, "is neither file, directory nor link");
      default:
        return header.type satisfies never;
    }
  }

  /** Sets modes and times of the directories that are still open. */
  async finish(): Promise<void> {
    while (this.#levels.length > 0) await this.#leave();
  }

  async close(): Promise<void> {
    for (const { directory } of this.#levels.splice(0)) await directory.close();
  }

  /** Closes directories up to the one that contains the entry. */
  async #ascend(parts: readonly string[]): Promise<void> {
    const parents = parts.slice(0, -1);
    const common = parents.findIndex((part, i) => this.#levels[i]?.name !== part);
    const keep = common === -1 ? parents.length : common;
    if (keep < parents.length)
      throw new ArchiveError("NOT_TAR", `${parts.join("/")} comes without the directory it is in`);
    while (this.#levels.length > keep) await this.#leave();
  }

  /** Sets the mode of a directory when it is complete, because the mode may forbid writing to it. */
  async #leave(): Promise<void> {
    const { directory, header } = this.#levels.pop() as Level;
    try {
      await directory.finish(header.mode & MODE_BITS, header.modifiedMs);
    } catch (error) {
      // The directory existed before and has another owner.
      if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
    } finally {
      await directory.close();
    }
  }

  async #enter(parent: Directory, name: string, path: string): Promise<Directory> {
    const present = await parent.stat(name);
    if (present === undefined) await parent.makeDirectory(name, 0o700);
    else if (!present.isDirectory())
      throw new ArchiveError("REFUSED", `${path} exists already, and is not a directory`);
    return parent.enter(name);
  }

  /** Writes the file under a temporary name and renames it, so that the file is never incomplete. */
  async #replace(
    parent: Directory,
    name: string,
    path: string,
    make: (temporary: string) => Promise<void>,
  ): Promise<void> {
    if ((await parent.stat(name))?.isDirectory())
      throw new ArchiveError("REFUSED", `${path} is a directory already`);
    const temporary = `.forage-copy-${this.#options.randomName().slice(0, 16)}`;
    try {
      await make(temporary);
      await parent.rename(temporary, name);
    } catch (error) {
      await parent.remove(temporary).catch(() => undefined);
      throw error;
    }
  }
}

function partsOf(path: string): readonly string[] {
  const parts = path.split("/");
  if (Buffer.byteLength(path) > PATH_MAX_BYTES || parts.length > DEPTH_MAX + 1)
    throw new ArchiveError("REFUSED", "the archive holds a path that is too long");
  if (parts.some((part) => part === "" || part === "." || part === ".." || part.includes("\0")))
    throw new ArchiveError("REFUSED", `the archive holds the path "${path}", which leads elsewhere`);
  return parts;
}

/**
 * Reports whether the link's target stays within the tree. Only leading `..` parts are resolved by name, because a
 * later part may itself be a link.
 */
function staysWithin(parts: readonly string[], target: string): boolean {
  if (target.startsWith("/") || target === "") return false;
  const steps = target.split("/").filter((step) => step !== "" && step !== ".");
  const up = steps.findIndex((step) => step !== "..");
  const ups = up === -1 ? steps.length : up;
  if (steps.slice(ups).includes("..")) return false;
  // The top directory itself must not be left.
  return ups <= parts.length - 2;
}

async function writeFile(
  parent: Directory,
  name: string,
  header: TarHeader,
  content: AsyncIterable<Buffer>,
): Promise<void> {
  const file = await parent.createFile(name);
  try {
    await writeSparse(file, content, header.sizeBytes);
    await file.chmod(header.mode & MODE_BITS);
    await file.utimes(header.modifiedMs / 1000, header.modifiedMs / 1000);
  } finally {
    await file.close();
  }
}

/** Writes data, with holes for runs of zeros, which the original file probably had too. */
async function writeSparse(
  file: FileHandle,
  content: AsyncIterable<Buffer>,
  sizeBytes: number,
): Promise<void> {
  let at = 0;
  for await (const chunk of content) {
    for (let from = 0; from < chunk.length; from += CHUNK_BYTES) {
      const piece = chunk.subarray(from, from + CHUNK_BYTES);
      if (!piece.equals(NOTHING.subarray(0, piece.length))) await writeAll(file, piece, at);
      at += piece.length;
    }
  }
  await file.truncate(sizeBytes);
}

async function writeAll(file: FileHandle, piece: Buffer, position: number): Promise<void> {
  for (let done = 0; done < piece.length; ) {
    const { bytesWritten } = await file.write(piece, done, piece.length - done, position + done);
    done += bytesWritten;
  }
}
