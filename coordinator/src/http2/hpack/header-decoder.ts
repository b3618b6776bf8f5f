import { HpackError } from "./hpack-error.ts";
import { decodeHuffman } from "./huffman.ts";
import { type Field, STATIC_TABLE } from "./static-table.ts";

/** The default size of the dynamic table. */
const TABLE_BYTES = 4_096;
/** The overhead that is added to the size of each field (RFC 7541, section 4.1). */
const FIELD_OVERHEAD_BYTES = 32;
/**
 * The size limit of integers. A dynamic table of 4,096 bytes has at most 128 fields, so larger
 * values are invalid.
 */
const MAX_INTEGER_BITS = 28;
/** Is shared, because each empty buffer takes 200 bytes. */
const NO_BYTES: Buffer = Buffer.alloc(0);

export interface HeaderList {
  readonly fields: readonly Field[];
  /**
   * Whether the fields exceed the limit. `fields` is then incomplete, but the dynamic table is
   * still correct.
   */
  readonly isTooLarge: boolean;
}

/** Decodes the header blocks of one connection in order, and maintains the dynamic table. */
export class HeaderDecoder {
  readonly #maxListBytes: number;
  /** The dynamic table, newest field first. */
  readonly #dynamic: Field[] = [];
  #dynamicBytes = 0;
  #maxDynamicBytes = TABLE_BYTES;
  #block = NO_BYTES;
  #at = 0;

  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes;
  }

  /** Decodes a block. Throws HpackError, after which the decoder must not be used. */
  decode(block: Buffer): HeaderList {
    this.#block = block;
    this.#at = 0;
    const fields: Field[] = [];
    let bytes = 0;
    let mayResize = true;
    while (this.#at < block.length) {
      const first = block[this.#at] ?? 0;
      if ((first & 0xe0) === 0x20) {
        if (!mayResize) throw new HpackError("a table size update follows a field");
        this.#resize(this.#integer(5));
        continue;
      }
      mayResize = false;
      const field = this.#field(first);
      bytes += sizeOf(field);
      if (bytes <= this.#maxListBytes) fields.push(field);
    }
    this.#block = NO_BYTES;
    return { fields, isTooLarge: bytes > this.#maxListBytes };
  }

  #field(first: number): Field {
    if ((first & 0x80) !== 0) return this.#indexed(this.#integer(7));
    const isKept = (first & 0x40) !== 0;
    const index = this.#integer(isKept ? 6 : 4);
    const name = index === 0 ? this.#string() : this.#indexed(index)[0];
    const field: Field = [name, this.#string()];
    if (isKept) this.#insert(field);
    return field;
  }

  #indexed(index: number): Field {
    const field = STATIC_TABLE[index - 1] ?? this.#dynamic[index - 1 - STATIC_TABLE.length];
    if (field === undefined) throw new HpackError(`the tables have no field ${index}`);
    return field;
  }

  #insert(field: Field): void {
    this.#dynamic.unshift(field);
    this.#dynamicBytes += sizeOf(field);
    this.#evict();
  }

  #resize(bytes: number): void {
    if (bytes > TABLE_BYTES) throw new HpackError(`a table of ${bytes} bytes is larger than allowed`);
    this.#maxDynamicBytes = bytes;
    this.#evict();
  }

  #evict(): void {
    while (this.#dynamicBytes > this.#maxDynamicBytes) {
      const oldest = this.#dynamic.pop();
      if (oldest === undefined) break;
      this.#dynamicBytes -= sizeOf(oldest);
    }
  }

  #integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let bits = 0; bits < MAX_INTEGER_BITS; bits += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** bits;
      if ((byte & 0x80) === 0) return value;
    }
    throw new HpackError("an integer is too long");
  }

  #string(): string {
    const isHuffman = ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const end = this.#at + length;
    if (end > this.#block.length) throw new HpackError("a string is longer than its block");
    const bytes = this.#block.subarray(this.#at, end);
    this.#at = end;
    return isHuffman ? decodeHuffman(bytes) : bytes.toString("latin1");
  }

  #byte(): number {
    const byte = this.#block[this.#at];
    if (byte === undefined) throw new HpackError("the block ends within a field");
    this.#at++;
    return byte;
  }
}

function sizeOf([name, value]: Field): number {
  return name.length + value.length + FIELD_OVERHEAD_BYTES;
}
