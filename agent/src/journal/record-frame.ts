import { crc32 } from "node:zlib";

/** The kinds of journal files. The numbers are on disk, so never reuse one. */
export const RECORD_KIND = {
  index: 1,
  pod: 2,
  state: 3,
  sealedPod: 4,
  services: 5,
  workspaceOrder: 6,
  workspaceState: 7,
  workspaceSecrets: 8,
} as const;
export type RECORD_KIND = (typeof RECORD_KIND)[keyof typeof RECORD_KIND];

const MAGIC = 0x46524a4c; // "FRJL"
const VERSION = 1;
const HEADER_BYTES = 16;

/**
 * Encodes a record for a file of its own: a header (magic, kind, version, length, CRC-32 over everything else) and the
 * payload.
 */
export function encodeRecord(kind: RECORD_KIND, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES + payload.byteLength);
  bytes.writeUInt32BE(MAGIC, 0);
  bytes.writeUInt8(kind, 4);
  bytes.writeUInt8(VERSION, 5);
  bytes.writeUInt32BE(payload.byteLength, 8);
  bytes.set(payload, HEADER_BYTES);
  bytes.writeUInt32BE(checksum(bytes), 12);
  return bytes;
}

/** Reports whether the header has this kind. Checks nothing else. */
export function isRecordOf(kind: RECORD_KIND, bytes: Buffer): boolean {
  return bytes.byteLength >= HEADER_BYTES && bytes.readUInt8(4) === kind;
}

/**
 * Reports whether the bytes begin like a record. A record with one wrong byte in its header counts as damaged, not as
 * foreign.
 */
export function isFramed(bytes: Buffer): boolean {
  const magic = Buffer.alloc(4);
  magic.writeUInt32BE(MAGIC);
  return magic.filter((byte, index) => bytes[index] === byte).byteLength >= magic.byteLength - 1;
}

/** Returns the payload. Throws an error with the reason if the bytes are invalid. */
export function decodeRecord(kind: RECORD_KIND, bytes: Buffer): Buffer {
  if (bytes.byteLength < HEADER_BYTES) throw new Error(`only ${bytes.byteLength} bytes long`);
  if (bytes.readUInt32BE(0) !== MAGIC) throw new Error("not a journal record");
  if (bytes.readUInt8(5) !== VERSION)
    throw new Error(`written in format ${bytes.readUInt8(5)}, not ${VERSION}`);
  if (bytes.readUInt8(4) !== kind) throw new Error(`a record of kind ${bytes.readUInt8(4)}, not ${kind}`);
  const length = bytes.readUInt32BE(8);
  if (bytes.byteLength !== HEADER_BYTES + length) {
    throw new Error(`${bytes.byteLength - HEADER_BYTES} bytes of ${length}`);
  }
  if (bytes.readUInt32BE(12) !== checksum(bytes)) throw new Error("checksum differs");
  return bytes.subarray(HEADER_BYTES);
}

function checksum(bytes: Buffer): number {
  return crc32(bytes.subarray(HEADER_BYTES), crc32(bytes.subarray(0, 12)));
}
