/** A file, link or directory of an archive; owner root, time 0, so that equal content gives equal bytes. */
export type TarEntry =
  | { readonly type: "file"; readonly path: string; readonly content: Uint8Array; readonly mode?: number }
  | { readonly type: "link"; readonly path: string; readonly target: string }
  | { readonly type: "directory"; readonly path: string; readonly mode?: number };

const BLOCK_BYTES = 512;
const TYPE_FLAG = { file: "0", link: "2", directory: "5" } as const;

/** Packs the entries, in the order given, as a POSIX ustar archive. */
export function packTar(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = entry.type === "file" ? Buffer.from(entry.content) : Buffer.alloc(0);
    return [header(entry, content.length), content, Buffer.alloc(padding(content.length))];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function header(entry: TarEntry, sizeBytes: number): Buffer {
  if (Buffer.byteLength(entry.path) > 100) throw new RangeError(`too long for this archive: ${entry.path}`);
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(entry.path, 0, 100);
  block.write(octal(modeOf(entry), 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(sizeBytes, 12), 124);
  block.write(octal(0, 12), 136);
  block.write("        ", 148);
  block.write(TYPE_FLAG[entry.type], 156);
  if (entry.type === "link") block.write(entry.target, 157, 100);
  block.write("ustar\x0000", 257, "latin1");
  block.write(`${octal(checksum(block), 7)} `, 148);
  return block;
}

function modeOf(entry: TarEntry): number {
  if (entry.type === "link") return 0o777;
  return entry.mode ?? (entry.type === "directory" ? 0o755 : 0o644);
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

function checksum(block: Buffer): number {
  return block.reduce((sum, byte) => sum + byte, 0);
}

function padding(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;
}
