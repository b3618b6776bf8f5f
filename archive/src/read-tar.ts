import { ArchiveError } from "./archive-error.ts";
import { applyExtended, BLOCK_BYTES, decodeBlock, decodePax, type TarHeader } from "./tar-header.ts";

export interface TarEntry {
  readonly header: TarHeader;
  /** Yields exactly `sizeBytes`; unread content is skipped. */
  readonly content: AsyncIterable<Buffer>;
  /** The offset of the content in the archive. */
  readonly offsetBytes: number;
}

/** Names and targets have at most 4096 bytes each, so a larger header is invalid. */
const PAX_MAX_BYTES = 64 * 1024;

/** Reads an archive as a stream, holding at most one chunk in memory. Throws NOT_TAR if it is invalid or truncated. */
export async function* readTar(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const source = new Source(chunks);
  let extended: ReadonlyMap<string, string> | undefined;
  try {
    while (true) {
      const bytes = await source.readExactly(BLOCK_BYTES);
      const decoded = decodeBlock(bytes);
      if (decoded === undefined) return await source.drain();
      const { flag, header } = decoded;
      if (flag === "x" || flag === "g") {
        if (header.sizeBytes > PAX_MAX_BYTES)
          throw new ArchiveError("NOT_TAR", `an extended header is larger than ${PAX_MAX_BYTES} bytes`);
        const records = decodePax(await source.readExactly(header.sizeBytes));
        await source.skip(padding(header.sizeBytes));
        if (flag === "x") extended = records;
        continue;
      }
      const entry = extended === undefined ? header : applyExtended(header, extended);
      extended = undefined;
      if (!Number.isSafeInteger(entry.sizeBytes) || entry.sizeBytes < 0)
        throw new ArchiveError("NOT_TAR", "the archive has an entry with an impossible size");
      const left = { bytes: entry.sizeBytes };
      yield { header: entry, content: contentOf(source, left), offsetBytes: source.offsetBytes };
      await source.skip(left.bytes + padding(entry.sizeBytes));
    }
  } finally {
    await source.close();
  }
}

async function* contentOf(source: Source, left: { bytes: number }): AsyncGenerator<Buffer> {
  while (left.bytes > 0) {
    const piece = await source.some(left.bytes);
    left.bytes -= piece.length;
    yield piece;
  }
}

function padding(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** A stream of bytes that is read in portions of requested sizes. */
class Source {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);
  /** The number of bytes read so far. */
  offsetBytes = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Returns available bytes, at least one and at most `maxBytes`. */
  async some(maxBytes: number): Promise<Buffer> {
    while (this.#held.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) throw new ArchiveError("NOT_TAR", "the archive ended early");
      this.#held = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
    const piece = this.#held.subarray(0, maxBytes);
    this.#held = this.#held.subarray(piece.length);
    this.offsetBytes += piece.length;
    return piece;
  }

  async readExactly(bytes: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let left = bytes; left > 0; ) {
      const piece = await this.some(left);
      left -= piece.length;
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }

  async skip(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; ) left -= (await this.some(left)).length;
  }

  /** Reads and ignores the bytes after the end mark, so that the writer isn't blocked. */
  async drain(): Promise<void> {
    this.#held = Buffer.alloc(0);
    while (!(await this.#chunks.next()).done);
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}
