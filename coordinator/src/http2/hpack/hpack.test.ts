import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { encodeFields } from "./encode-fields.ts";
import { HeaderDecoder } from "./header-decoder.ts";
import { HpackError } from "./hpack-error.ts";
import { decodeHuffman } from "./huffman.ts";

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");

describe("HeaderDecoder", () => {
  // The examples of RFC 7541, C.3 and C.4: the same three requests in plain strings and in Huffman
  // code.
  for (const [form, blocks] of [
    [
      "plain strings",
      [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
      ],
    ],
    [
      "Huffman code",
      [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
      ],
    ],
  ] as const) {
    test(`decodes three requests of one connection in ${form}`, () => {
      const decoder = new HeaderDecoder(1_000);
      const [first, second, third] = blocks.map((block) => decoder.decode(bytes(block)).fields);
      const request = [
        [":method", "GET"],
        [":scheme", "http"],
        [":path", "/"],
        [":authority", "www.example.com"],
      ];
      assert.deepEqual(first, request);
      assert.deepEqual(second, [...request, ["cache-control", "no-cache"]]);
      assert.deepEqual(third, [
        [":method", "GET"],
        [":scheme", "https"],
        [":path", "/index.html"],
        [":authority", "www.example.com"],
        ["custom-key", "custom-value"],
      ]);
    });
  }

  test("evicts the oldest fields of a full table", () => {
    const decoder = new HeaderDecoder(100_000);
    const literal = (name: string): Buffer =>
      Buffer.concat([Buffer.from([0x40, name.length]), Buffer.from(name), Buffer.from([0])]);
    // Each field takes 40 bytes, so 102 of them fit.
    const names = Array.from({ length: 110 }, (_, index) => `name-${String(index).padStart(3, "0")}`);
    decoder.decode(Buffer.concat(names.map(literal)));
    assert.deepEqual(decoder.decode(bytes("be")).fields, [["name-109", ""]]);
    assert.deepEqual(decoder.decode(Buffer.from([0xff, 62 + 101 - 127])).fields, [["name-008", ""]]);
    assert.throws(() => decoder.decode(Buffer.from([0xff, 62 + 102 - 127])), HpackError);
  });

  test("keeps its table correct when a list is too large", () => {
    const decoder = new HeaderDecoder(100);
    const block = Buffer.concat([bytes("400161 7f00"), Buffer.alloc(127, 0x62), bytes("4001630164")]);
    const { isTooLarge, fields } = decoder.decode(block);
    assert.equal(isTooLarge, true);
    assert.deepEqual(fields, []);
    assert.deepEqual(decoder.decode(bytes("be")).fields, [["c", "d"]]);
  });

  for (const [fault, block] of [
    ["an index of 0", "80"],
    ["an index beyond the tables", "be"],
    ["an integer without an end", "ffffffffffffff"],
    ["a string beyond the block", "40057a"],
    ["a block that ends within a field", "40"],
    ["a table size that was not agreed", "3fe21f"],
    ["a table size after a field", "8220"],
  ] as const)
    test(`refuses ${fault}`, () => {
      assert.throws(() => new HeaderDecoder(1_000).decode(bytes(block)), HpackError);
    });

  test("decodes the output of encodeFields", () => {
    const fields = [
      [":status", "200"],
      ["content-type", "application/grpc"],
      ["grpc-message", "x".repeat(1_000)],
    ] as const;
    assert.deepEqual(new HeaderDecoder(10_000).decode(encodeFields(fields)).fields, fields);
  });
});

describe("decodeHuffman", () => {
  test("refuses a string that contains its end, and invalid padding", () => {
    assert.throws(() => decodeHuffman(bytes("ffffffff")), HpackError);
    assert.throws(() => decodeHuffman(bytes("18")), HpackError, "padding of zeros");
    assert.throws(() => decodeHuffman(bytes("1fff")), HpackError, "padding of more than seven bits");
    assert.equal(decodeHuffman(bytes("1f")), "a");
  });
});
