import assert from "node:assert/strict";
import { test } from "node:test";
import { packBytes, unpackBytes } from "./packed-bytes.ts";

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte);

test("every byte stays as it is", () => {
  assert.deepEqual(unpackBytes(packBytes(EVERY_BYTE)), EVERY_BYTE);
  assert.equal(packBytes(EVERY_BYTE).length, 256);
});

test("no bytes stay no bytes", () => {
  assert.equal(packBytes(new Uint8Array()), "");
  assert.deepEqual(unpackBytes(packBytes(new Uint8Array())), new Uint8Array());
});

test("a slice is packed without the rest of its buffer", () => {
  assert.deepEqual(unpackBytes(packBytes(EVERY_BYTE.subarray(200, 203))), Uint8Array.of(200, 201, 202));
});

test("packed bytes don't change with the array, nor with an array that was unpacked", () => {
  const bytes = Uint8Array.of(1, 2);
  const packed = packBytes(bytes);
  bytes[0] = 9;
  unpackBytes(packed)[1] = 9;
  assert.deepEqual(unpackBytes(packed), Uint8Array.of(1, 2));
});
