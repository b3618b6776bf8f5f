import assert from "node:assert/strict";
import { test } from "node:test";
import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { keptWriter } from "./binary-writer.ts";

/** Writes a string, a number and a nested part, as generated code does. */
function write(writer: BinaryWriter, text: string): Uint8Array {
  return writer.uint32(10).string(text).uint32(18).fork().uint32(8).uint32(text.length).join().finish();
}

test("encodes messages of any size like a new writer, one after another", () => {
  for (const length of [0, 1, 100, 900, 1_020, 1_100, 9_000, 70_000, 200_000, 5]) {
    const text = "ä".repeat(length);
    assert.deepEqual(write(keptWriter(), text), write(new BinaryWriter(), text), `${length} characters`);
  }
});

test("keeps earlier messages when later ones are encoded", () => {
  const texts = Array.from({ length: 200 }, (_, index) => `${index}`.repeat(1 + (index % 300)));
  const encoded = texts.map((text) => write(keptWriter(), text));
  for (const [index, bytes] of encoded.entries()) {
    const reader = new BinaryReader(bytes);
    reader.uint32();
    assert.equal(reader.string(), texts[index]);
  }
});

test("encodes a message while another one is encoded", () => {
  const outer = keptWriter().uint32(10).string("outer");
  const inner = write(keptWriter(), "inner");
  assert.deepEqual(inner, write(new BinaryWriter(), "inner"));
  assert.deepEqual(outer.finish(), new BinaryWriter().uint32(10).string("outer").finish());
});

test("does not use a writer again whose message failed", () => {
  const failed = keptWriter().uint32(10).string("secret");
  assert.throws(() => failed.uint32(-1));
  assert.deepEqual(write(keptWriter(), "next"), write(new BinaryWriter(), "next"));
});

test("an empty message has no bytes", () => {
  assert.deepEqual(keptWriter().finish(), new Uint8Array());
});
