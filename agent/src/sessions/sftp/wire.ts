/** Version 3 of the SSH file transfer protocol (draft-ietf-secsh-filexfer-02), which OpenSSH and all common clients speak. */
export const SFTP_VERSION = 3;

export const REQUEST = {
  init: 1,
  open: 3,
  close: 4,
  read: 5,
  write: 6,
  lstat: 7,
  fstat: 8,
  setstat: 9,
  fsetstat: 10,
  opendir: 11,
  readdir: 12,
  remove: 13,
  mkdir: 14,
  rmdir: 15,
  realpath: 16,
  stat: 17,
  rename: 18,
  readlink: 19,
  symlink: 20,
  extended: 200,
} as const;

export const RESPONSE = {
  version: 2,
  status: 101,
  handle: 102,
  data: 103,
  name: 104,
  attributes: 105,
  extendedReply: 201,
} as const;

export const STATUS = {
  ok: 0,
  endOfFile: 1,
  noSuchFile: 2,
  permissionDenied: 3,
  failure: 4,
  badMessage: 5,
  unsupported: 8,
} as const;

export type StatusCode = (typeof STATUS)[keyof typeof STATUS];

/** Bits of the field `pflags` of an open request. */
export const OPEN_FLAG = { read: 1, write: 2, append: 4, create: 8, truncate: 16, exclusive: 32 } as const;

/** The limit of OpenSSH's server. */
export const MAX_PACKET_BYTES = 256 * 1024;
/** The rest of a packet is reserved for headers. */
export const MAX_DATA_BYTES = MAX_PACKET_BYTES - 1024;

/** A failure that is sent to the client as a status. */
export class SftpError extends Error {
  override readonly name = "SftpError";
  readonly status: StatusCode;

  constructor(status: StatusCode, message: string) {
    super(message);
    this.status = status;
  }
}

/** Reads the fields of a packet. Throws SftpError if the packet is too short. */
export class PacketReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#read(1).readUInt8();
  }

  uint32(): number {
    return this.#read(4).readUInt32BE();
  }

  /** Reads an offset or a size. Throws SftpError above the largest integer that JavaScript represents exactly. */
  uint64(): number {
    const value = this.#read(8).readBigUInt64BE();
    if (value > BigInt(Number.MAX_SAFE_INTEGER))
      throw new SftpError(STATUS.failure, "the number is too large");
    return Number(value);
  }

  bytes(): Buffer {
    return this.#read(this.uint32());
  }

  /** Reads a name or a path. */
  text(): string {
    const text = this.bytes().toString();
    if (text.includes("\0")) throw new SftpError(STATUS.failure, "a path contains a zero byte");
    return text;
  }

  #read(count: number): Buffer {
    if (this.#at + count > this.#bytes.length)
      throw new SftpError(STATUS.badMessage, "the packet is too short");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }
}

/** Builds one packet. */
export class PacketWriter {
  readonly #chunks: Buffer[] = [];

  constructor(type: number) {
    this.#chunks.push(Buffer.from([type]));
  }

  uint32(value: number): this {
    const part = Buffer.allocUnsafe(4);
    part.writeUInt32BE(value);
    this.#chunks.push(part);
    return this;
  }

  uint64(value: number | bigint): this {
    const part = Buffer.allocUnsafe(8);
    part.writeBigUInt64BE(BigInt(value));
    this.#chunks.push(part);
    return this;
  }

  bytes(value: string | Buffer): this {
    const part = typeof value === "string" ? Buffer.from(value) : value;
    this.uint32(part.length);
    this.#chunks.push(part);
    return this;
  }

  /** Appends encoded fields. */
  raw(part: Buffer): this {
    this.#chunks.push(part);
    return this;
  }

  /** Returns the fields without the packet's type. */
  fields(): Buffer {
    return Buffer.concat(this.#chunks.slice(1));
  }

  /** Returns the packet after its length. */
  packet(): Buffer {
    const body = Buffer.concat(this.#chunks);
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32BE(body.length);
    return Buffer.concat([length, body]);
  }
}

/** Yields the packets of a stream without their lengths. Throws SftpError for a packet that is too long. */
export async function* packetsOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let chunks: Uint8Array[] = [];
  let held = 0;
  let needed = 4;
  for await (const chunk of input) {
    chunks.push(chunk);
    held += chunk.length;
    if (held < needed) continue;
    let rest = Buffer.concat(chunks);
    while (rest.length >= 4) {
      const length = rest.readUInt32BE();
      if (length === 0 || length > MAX_PACKET_BYTES)
        throw new SftpError(STATUS.badMessage, `the client sent a packet of ${length} bytes`);
      needed = 4 + length;
      if (rest.length < needed) break;
      yield rest.subarray(4, needed);
      rest = rest.subarray(needed);
      needed = 4;
    }
    chunks = [rest];
    held = rest.length;
  }
}
