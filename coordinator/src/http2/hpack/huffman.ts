import { HpackError } from "./hpack-error.ts";

/**
 * The lengths in bits of HPACK's Huffman codes (RFC 7541, appendix B) by symbol; 256 is the end of
 * the string. The code is canonical: codes are ordered by length, then by symbol.
 */
const CODE_LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const END_OF_STRING = 256;
const MAX_PADDING_BITS = 7;

/**
 * The decoding tree. Each inner node has two entries, one for each bit: the next inner node, or the
 * complement of a symbol.
 */
const TREE: readonly number[] = treeOf(CODE_LENGTHS);

/**
 * Decodes a string in HPACK's Huffman code. Throws HpackError if the padding is invalid or the end
 * of string is encoded.
 */
export function decodeHuffman(bytes: Buffer): string {
  const decoded = Buffer.allocUnsafe(Math.floor((bytes.length * 8) / 5) + 1);
  let length = 0;
  let node = 0;
  let bitsOfSymbol = 0;
  let isAllOnes = true;
  for (const byte of bytes) {
    for (let shift = 7; shift >= 0; shift--) {
      const bit = (byte >> shift) & 1;
      const next = TREE[node + bit] ?? 0;
      bitsOfSymbol++;
      isAllOnes &&= bit === 1;
      if (next >= 0) {
        node = next;
        continue;
      }
      const symbol = ~next;
      if (symbol === END_OF_STRING)
        throw new HpackError("a Huffman string contains the end-of-string symbol");
      decoded[length++] = symbol;
      node = 0;
      bitsOfSymbol = 0;
      isAllOnes = true;
    }
  }
  if (bitsOfSymbol > MAX_PADDING_BITS || !isAllOnes)
    throw new HpackError("a Huffman string has invalid padding");
  return decoded.toString("latin1", 0, length);
}

function treeOf(lengths: readonly number[]): number[] {
  const tree = [0, 0];
  const symbols = lengths.map((bits, symbol) => ({ bits, symbol }));
  symbols.sort((a, b) => a.bits - b.bits || a.symbol - b.symbol);
  let code = 0;
  let bitsBefore = 0;
  for (const { bits, symbol } of symbols) {
    code *= 2 ** (bits - bitsBefore);
    bitsBefore = bits;
    insert(tree, code, bits, symbol);
    code++;
  }
  return tree;
}

function insert(tree: number[], code: number, bits: number, symbol: number): void {
  let node = 0;
  for (let shift = bits - 1; shift > 0; shift--) {
    const at = node + ((code >> shift) & 1);
    if (tree[at] === 0) tree[at] = tree.push(0, 0) - 2;
    node = tree[at] ?? 0;
  }
  tree[node + (code & 1)] = ~symbol;
}
