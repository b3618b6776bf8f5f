import assert from "node:assert/strict";
import { test } from "node:test";
import { BYTES_FIELD_HEADER_MAX, readBytesField, writeBytesFieldHeader } from "./bytes-field.ts";

const SIZES = [0, 1, 127, 128, 16_383, 16_384, 262_144];

test("reads the encoded value, and shares its memory", () => {
  for (const size of SIZES) {
    const buffer = Buffer.alloc(BYTES_FIELD_HEADER_MAX + size, 7);
    const message = writeBytesFieldHeader(buffer, 2, size);
    const value = readBytesField(message, 2);
    assert.equal(value?.length, size);
    assert.equal(value?.buffer, buffer.buffer);
    assert.ok(value?.every((byte) => byte === 7));
  }
});

test("writes what protobuf specifies", () => {
  const encoded = (size: number) =>
    writeBytesFieldHeader(Buffer.alloc(BYTES_FIELD_HEADER_MAX + size), 1, size).subarray(0, 4);
  assert.deepEqual([...encoded(3)], [0x0a, 3, 0, 0]);
  assert.deepEqual([...encoded(300)], [0x0a, 0xac, 0x02, 0]);
});

test("leaves other messages to a general decoder", () => {
  for (const bytes of [
    [],
    [0x12],
    [0x12, 0x80],
    [0x12, 2, 1],
    [0x12, 1, 1, 0x12],
    [0x0a, 1, 1],
    [0x12, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
  ])
    assert.equal(readBytesField(Buffer.from(bytes), 2), undefined);
});
