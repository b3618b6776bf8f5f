import { ArchiveError } from "./archive-error.ts";

/** An entry of a POSIX archive. Owners are left out, because they mean nothing on another machine. */
export interface TarHeader {
  /** The path with `/` between its parts, without one at the end. */
  readonly path: string;
  /** The kind of the entry. `other`: devices, pipes and everything else that is not copied. */
  readonly type: "file" | "directory" | "link" | "other";
  /** Permission bits, 0 to 0o7777. */
  readonly mode: number;
  /** The modification time in milliseconds since the epoch, with fractions. */
  readonly modifiedMs: number;
  /** The size of the content that follows. 0 except for files. */
  readonly sizeBytes: number;
  /** The link's target. */
  readonly target: string;
}

export const BLOCK_BYTES = 512;
/** An archive ends with two empty blocks. */
export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK_BYTES);

const TYPE_FLAGS = { file: "0", link: "2", directory: "5", other: "" } as const;
const NAME_MAX_BYTES = 100;
const OCTAL_SIZE_MAX = 0o77777777777;

/**
 * Returns the blocks before the content. Values that don't fit into a plain header go into an extended header before
 * it.
 */
export function encodeHeader(header: TarHeader): Buffer {
  const extended: Record<string, string> = {};
  const name = header.type === "directory" ? `${header.path}/` : header.path;
  if (!fits(name)) extended.path = name;
  if (!fits(header.target)) extended.linkpath = header.target;
  if (header.sizeBytes > OCTAL_SIZE_MAX) extended.size = String(header.sizeBytes);
  const seconds = Math.floor(header.modifiedMs / 1000);
  if (seconds * 1000 !== header.modifiedMs || seconds < 0 || seconds > OCTAL_SIZE_MAX)
    extended.mtime = (header.modifiedMs / 1000).toFixed(6);
  const plain = block({ ...header, path: name }, TYPE_FLAGS[header.type]);
  const records = Object.entries(extended).map(([key, value]) => paxRecord(key, value));
  if (records.length === 0) return plain;
  const content = Buffer.from(records.join(""));
  const pax = { ...header, path: "PaxHeader", target: "", mode: 0o644, sizeBytes: content.length };
  return Buffer.concat([block(pax, "x"), content, paddingFor(content.length), plain]);
}

/** Returns the padding of the content's last block. */
export function paddingFor(sizeBytes: number): Buffer {
  return TAR_END.subarray(0, (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

/**
 * Parses one header block. `flag` distinguishes extended headers (`x`, `g`) from entries. Returns undefined for an empty block.
 */
export function decodeBlock(
  bytes: Buffer,
): { readonly flag: string; readonly header: TarHeader } | undefined {
  if (bytes.equals(TAR_END.subarray(0, BLOCK_BYTES))) return undefined;
  const stored = octal(bytes, 148, 8);
  if (stored !== checksum(bytes)) throw new ArchiveError("NOT_TAR", "the stream is not a tar archive");
  const prefix = bytes.toString("latin1", 257, 262) === "ustar" ? text(bytes, 345, 155) : "";
  const name = text(bytes, 0, NAME_MAX_BYTES);
  const flag = bytes.toString("latin1", 156, 157);
  const type = flag === "0" || flag === "\0" || flag === "7" ? "file" : typeOf(flag);
  return {
    flag,
    header: {
      path: prefix === "" ? name : `${prefix}/${name}`,
      type,
      mode: octal(bytes, 100, 8) & 0o7777,
      modifiedMs: octal(bytes, 136, 12) * 1000,
      sizeBytes: octal(bytes, 124, 12),
      target: type === "link" ? text(bytes, 157, NAME_MAX_BYTES) : "",
    },
  };
}

/** Applies the values of an extended header to the plain header that follows it. */
export function applyExtended(header: TarHeader, records: ReadonlyMap<string, string>): TarHeader {
  const [path, target, size, mtime] = ["path", "linkpath", "size", "mtime"].map((key) => records.get(key));
  return {
    ...header,
    ...(path !== undefined && { path }),
    ...(target !== undefined && { target }),
    ...(size !== undefined && { sizeBytes: number(size) }),
    ...(mtime !== undefined && { modifiedMs: Math.round(number(mtime) * 1000) }),
  };
}

/** Decodes records `LENGTH KEY=VALUE\n`. The length includes itself. */
export function decodePax(bytes: Buffer): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(" ", at);
    const length = number(bytes.toString("latin1", at, space));
    const end = at + length;
    const equals = bytes.indexOf("=", space);
    if (
      space < 0 ||
      length <= 0 ||
      end > bytes.length ||
      equals < 0 ||
      equals >= end ||
      bytes[end - 1] !== 10
    )
      throw new ArchiveError("NOT_TAR", "the archive has an extended header that can't be read");
    records.set(bytes.toString("utf8", space + 1, equals), bytes.toString("utf8", equals + 1, end - 1));
    at = end;
  }
  return records;
}

function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + String(bytes).length;
  if (bytes + String(length).length !== length) length = bytes + String(length).length;
  return `${length}${rest}`;
}

function block(header: TarHeader, flag: string): Buffer {
  const { path, mode, sizeBytes, modifiedMs, target } = header;
  const bytes = Buffer.alloc(BLOCK_BYTES);
  bytes.write(fits(path) ? path : "long", 0, NAME_MAX_BYTES);
  bytes.write(octalText(mode, 8), 100);
  bytes.write(octalText(0, 8), 108);
  bytes.write(octalText(0, 8), 116);
  bytes.write(octalText(Math.min(sizeBytes, OCTAL_SIZE_MAX), 12), 124);
  bytes.write(octalText(Math.min(Math.max(0, Math.floor(modifiedMs / 1000)), OCTAL_SIZE_MAX), 12), 136);
  bytes.write("        ", 148);
  bytes.write(flag, 156);
  bytes.write(fits(target) ? target : "long", 157, NAME_MAX_BYTES);
  bytes.write("ustar\x0000", 257, "latin1");
  bytes.write(`${octalText(checksum(bytes), 7)} `, 148);
  return bytes;
}

function typeOf(flag: string): TarHeader["type"] {
  if (flag === "5") return "directory";
  return flag === "2" ? "link" : "other";
}

/** Reports whether a value fits into a plain header. Plain headers have no encoding, so it must be ASCII. */
function fits(value: string): boolean {
  return value.length <= NAME_MAX_BYTES && /^[\x20-\x7e]*$/.test(value);
}

/** Computes the header's checksum, for which the checksum field counts as spaces. */
function checksum(bytes: Buffer): number {
  const all = bytes.reduce((sum, byte) => sum + byte, 0);
  return all - bytes.subarray(148, 156).reduce((sum, byte) => sum + byte, 0) + 8 * 0x20;
}

function octal(bytes: Buffer, at: number, width: number): number {
  const digits = text(bytes, at, width).trim();
  if (!/^[0-7]*$/.test(digits)) throw new ArchiveError("NOT_TAR", "the stream is not a tar archive");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

function text(bytes: Buffer, at: number, width: number): string {
  const field = bytes.subarray(at, at + width);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? width : end);
}

function octalText(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

function number(value: string): number {
  const parsed = Number(value);
  if (value.trim() === "" || !Number.isFinite(parsed))
    throw new ArchiveError("NOT_TAR", "the archive has an extended header that can't be read");
  return parsed;
}
