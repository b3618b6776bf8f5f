import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRecord, encodeRecord, RECORD_KIND } from "./record-frame.ts";

const payload = Buffer.from("a pod");

test("a decoded record has the encoded payload", () => {
  assert.deepEqual(decodeRecord(RECORD_KIND.pod, encodeRecord(RECORD_KIND.pod, payload)), payload);
  assert.equal(decodeRecord(RECORD_KIND.pod, encodeRecord(RECORD_KIND.pod, Buffer.alloc(0))).byteLength, 0);
});

test("detects any flipped bit, truncation or addition", () => {
  const record = encodeRecord(RECORD_KIND.pod, payload);
  for (let bit = 0; bit < record.byteLength * 8; bit++) {
    const flipped = Buffer.from(record);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.throws(() => decodeRecord(RECORD_KIND.pod, flipped), `bit ${bit}`);
  }
  for (let length = 0; length < record.byteLength; length++) {
    assert.throws(() => decodeRecord(RECORD_KIND.pod, record.subarray(0, length)), `length ${length}`);
  }
  assert.throws(() => decodeRecord(RECORD_KIND.pod, Buffer.concat([record, Buffer.alloc(1)])));
});

test("rejects a record of another kind", () => {
  assert.throws(
    () => decodeRecord(RECORD_KIND.pod, encodeRecord(RECORD_KIND.state, payload)),
    /kind 3, not 1|kind/,
  );
});
