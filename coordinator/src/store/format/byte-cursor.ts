import { type PackedBytes, packBytes } from "../packed-bytes.ts";

/** The size of whole numbers: six bytes, up to 2.8e14, which a million revisions per second reach after nine years. */
const NUMBER_BYTES = 6;

/** Writes fields one after the other into a buffer of known size. */
export class ByteWriter {
  readonly bytes: Buffer;
  #at = 0;

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafe(size);
  }

  get at(): number {
    return this.#at;
  }

  uint8(value: number): this {
    this.#at = this.bytes.writeUInt8(value, this.#at);
    return this;
  }

  uint32(value: number): this {
    this.#at = this.bytes.writeUInt32LE(value, this.#at);
    return this;
  }

  number(value: number): this {
    this.#at = this.bytes.writeUIntLE(value, this.#at, NUMBER_BYTES);
    return this;
  }

  raw(value: Uint8Array): this {
    this.bytes.set(value, this.#at);
    this.#at += value.byteLength;
    return this;
  }

  /** Writes the text in UTF-8, without its length. */
  text(value: string): this {
    this.#at += this.bytes.write(value, this.#at, "utf8");
    return this;
  }

  packed(value: PackedBytes): this {
    this.#at += this.bytes.write(value, this.#at, "latin1");
    return this;
  }
}

/** Reads fields from a buffer one after the other. @throws RangeError if too few bytes are left. */
export class ByteReader {
  readonly #bytes: Buffer;
  #at: number;

  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  get rest(): number {
    return this.#bytes.length - this.#at;
  }

  uint8(): number {
    return this.#bytes.readUInt8(this.#read(1));
  }

  uint32(): number {
    return this.#bytes.readUInt32LE(this.#read(4));
  }

  number(): number {
    return this.#bytes.readUIntLE(this.#read(NUMBER_BYTES), NUMBER_BYTES);
  }

  raw(size: number): Buffer {
    const at = this.#read(size);
    return this.#bytes.subarray(at, at + size);
  }

  packed(size: number): PackedBytes {
    return packBytes(this.raw(size));
  }

  text(size: number): string {
    return this.raw(size).toString("utf8");
  }

  #read(size: number): number {
    const at = this.#at;
    if (size > this.rest) throw new RangeError(`${size} bytes requested at ${at}, ${this.rest} left`);
    this.#at = at + size;
    return at;
  }
}

export const SIZES = { uint8: 1, uint32: 4, number: NUMBER_BYTES } as const;
