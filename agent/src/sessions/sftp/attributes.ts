import { constants, type Stats } from "node:fs";
import { type PacketReader, PacketWriter } from "./wire.ts";

/** Attributes that a client sets. Undefined fields are unchanged. */
export interface Attributes {
  readonly size?: number;
  readonly owner?: { readonly uid: number; readonly gid: number };
  readonly mode?: number;
  readonly times?: { readonly accessedSeconds: number; readonly modifiedSeconds: number };
}

const FLAG = { size: 1, owner: 2, mode: 4, times: 8 } as const;
/** The type, setuid, setgid, sticky and permission bits. */
const MODE_BITS = 0o7777;
const TYPES = new Map([
  [constants.S_IFSOCK, "s"],
  [constants.S_IFLNK, "l"],
  [constants.S_IFREG, "-"],
  [constants.S_IFBLK, "b"],
  [constants.S_IFDIR, "d"],
  [constants.S_IFCHR, "c"],
  [constants.S_IFIFO, "p"],
]);
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** Times are 32 bits wide in this version of the protocol. */
const MAX_SECONDS = 0xffffffff;

export function readAttributes(reader: PacketReader): Attributes {
  const flags = reader.uint32();
  const has = (flag: number): boolean => (flags & flag) !== 0;
  // The order of the fields is that of the packet.
  const size = has(FLAG.size) ? { size: reader.uint64() } : {};
  const owner = has(FLAG.owner) ? { owner: { uid: reader.uint32(), gid: reader.uint32() } } : {};
  const mode = has(FLAG.mode) ? { mode: reader.uint32() & MODE_BITS } : {};
  const times = has(FLAG.times)
    ? { times: { accessedSeconds: reader.uint32(), modifiedSeconds: reader.uint32() } }
    : {};
  return { ...size, ...owner, ...mode, ...times };
}

/** Returns the encoded attributes of a file. */
export function encodeAttributes({ size, uid, gid, mode, atimeMs, mtimeMs }: Stats): Buffer {
  const seconds = (ms: number): number => Math.min(Math.max(Math.floor(ms / 1000), 0), MAX_SECONDS);
  const fields = new PacketWriter(0)
    .uint32(FLAG.size | FLAG.owner | FLAG.mode | FLAG.times)
    .uint64(size)
    .uint32(uid)
    .uint32(gid)
    .uint32(mode)
    .uint32(seconds(atimeMs))
    .uint32(seconds(mtimeMs));
  return fields.fields();
}

/** Returns a line in the format of `ls -ln`, which clients display. */
export function longName(name: string, { mode, nlink, uid, gid, size, mtimeMs }: Stats): string {
  const modified = new Date(mtimeMs);
  const month = MONTHS[modified.getUTCMonth()] ?? "";
  const date = `${month} ${String(modified.getUTCDate()).padStart(2)}  ${modified.getUTCFullYear()}`;
  const numbers = [String(nlink).padStart(4), String(uid).padEnd(8), String(gid).padEnd(8)];
  return `${modeText(mode)} ${numbers.join(" ")} ${String(size).padStart(8)} ${date} ${name}`;
}

function modeText(mode: number): string {
  const bits = [6, 3, 0].map((shift, at) => {
    const three = (mode >> shift) & 0o7;
    const isSpecial = (mode & (0o4000 >> at)) !== 0;
    const letter = at === 2 ? "t" : "s";
    const execute = (three & 1) !== 0 ? (isSpecial ? letter : "x") : isSpecial ? letter.toUpperCase() : "-";
    return `${(three & 4) !== 0 ? "r" : "-"}${(three & 2) !== 0 ? "w" : "-"}${execute}`;
  });
  return `${TYPES.get(mode & constants.S_IFMT) ?? "?"}${bits.join("")}`;
}
