import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRecord, encodeRecord, RecordKind } from "./record-frame.ts";

const payload = Buffer.from("a pod");

test("a record gives back its payload", () => {
  assert.deepEqual(decodeRecord(RecordKind.pod, encodeRecord(RecordKind.pod, payload)), payload);
  assert.equal(decodeRecord(RecordKind.pod, encodeRecord(RecordKind.pod, Buffer.alloc(0))).byteLength, 0);
});

test("any flipped bit, any cut and any addition is noticed", () => {
  const record = encodeRecord(RecordKind.pod, payload);
  for (let bit = 0; bit < record.byteLength * 8; bit++) {
    const flipped = Buffer.from(record);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.throws(() => decodeRecord(RecordKind.pod, flipped), `bit ${bit}`);
  }
  for (let length = 0; length < record.byteLength; length++) {
    assert.throws(() => decodeRecord(RecordKind.pod, record.subarray(0, length)), `length ${length}`);
  }
  assert.throws(() => decodeRecord(RecordKind.pod, Buffer.concat([record, Buffer.alloc(1)])));
});

test("a record of another kind is refused", () => {
  assert.throws(
    () => decodeRecord(RecordKind.pod, encodeRecord(RecordKind.state, payload)),
    /kind 3, not 1|kind/,
  );
});
