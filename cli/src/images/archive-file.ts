import { type FileHandle, open } from "node:fs/promises";
import { readTar } from "@forage/archive";
import { CliError } from "../errors.ts";

/** The position of one file's content in an archive. */
export interface ArchivePart {
  readonly offsetBytes: number;
  readonly sizeBytes: number;
}

/** The size limit of manifests and configurations, which have a few KiB. */
const DOCUMENT_MAX_BYTES = 4 * 1024 * 1024;
/** The most files in an archive. Each layer has one or two. */
const ENTRIES_MAX = 100_000;
const CHUNK_BYTES = 256 * 1024;

/** The files of an uncompressed tar archive on disk, with random access. */
export class ArchiveFile {
  readonly path: string;
  readonly #file: FileHandle;
  readonly #parts: ReadonlyMap<string, ArchivePart>;

  private constructor(path: string, file: FileHandle, parts: ReadonlyMap<string, ArchivePart>) {
    this.path = path;
    this.#file = file;
    this.#parts = parts;
  }

  static async open(path: string): Promise<ArchiveFile> {
    const file = await open(path, "r");
    try {
      return new ArchiveFile(path, file, await listParts(file, path));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  part(path: string): ArchivePart | undefined {
    return this.#parts.get(path);
  }

  /** Reads the content of a small file. Throws if the archive lacks it. */
  async document(path: string): Promise<Buffer> {
    const part = this.#parts.get(path);
    if (part === undefined) throw new CliError("REFUSED", `${this.path}: the archive has no file ${path}`);
    if (part.sizeBytes > DOCUMENT_MAX_BYTES)
      throw new CliError("REFUSED", `${this.path}: ${path} is larger than ${DOCUMENT_MAX_BYTES} bytes`);
    const pieces: Buffer[] = [];
    for await (const piece of this.read(part)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  async *read({ offsetBytes, sizeBytes }: ArchivePart): AsyncGenerator<Buffer> {
    for (let at = 0; at < sizeBytes; ) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, sizeBytes - at));
      const { bytesRead } = await this.#file.read(buffer, 0, buffer.length, offsetBytes + at);
      if (bytesRead === 0) throw new CliError("REFUSED", `${this.path}: the archive has become shorter`);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

async function listParts(file: FileHandle, path: string): Promise<ReadonlyMap<string, ArchivePart>> {
  const parts = new Map<string, ArchivePart>();
  const chunks = file.createReadStream({ autoClose: false, start: 0, highWaterMark: CHUNK_BYTES });
  for await (const { header, offsetBytes } of readTar(chunks)) {
    if (parts.size >= ENTRIES_MAX)
      throw new CliError("REFUSED", `${path}: the archive has more than ${ENTRIES_MAX} files`);
    if (header.type === "file")
      parts.set(header.path.replace(/^\.\//, ""), { offsetBytes, sizeBytes: header.sizeBytes });
  }
  return parts;
}
