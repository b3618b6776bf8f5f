import assert from "node:assert/strict";
import { test } from "node:test";
import { PodRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../errors.ts";
import { decodeJsonRecord, decodeRecord, encodeJsonRecord, encodeRecord } from "./codec.ts";

const pod = PodRecord.fromPartial({
  name: "a",
  labels: { "": "b", ü: "" },
  createdAt: { seconds: -1n, nanos: 5 },
});

test("decodes encoded records", () => {
  assert.deepEqual(decodeRecord(PodRecord, "pods/a", encodeRecord(PodRecord, pod)), pod);
  const json = { a: [1, "ü"], b: null };
  assert.deepEqual(decodeJsonRecord("x/a", encodeJsonRecord(json)), json);
});

test("rejects a record with an unknown layout in its first byte, and names it", () => {
  const value = encodeRecord(PodRecord, pod);
  assert.equal(value[0], 1);
  value[0] = 2;
  for (const bytes of [value, new Uint8Array(0)]) {
    assert.throws(
      () => decodeRecord(PodRecord, "pods/shop/a", bytes),
      (error: unknown) => error instanceof CoordinatorError && /pods\/shop\/a has layout/.test(error.message),
    );
  }
});

test("rejects a truncated record, and names it", () => {
  const value = encodeRecord(PodRecord, pod);
  assert.throws(
    () => decodeRecord(PodRecord, "pods/shop/a", value.subarray(0, value.length - 1)),
    /pods\/shop\/a can't be decoded/,
  );
  assert.throws(() => decodeJsonRecord("x/a", Uint8Array.of(1, 0x7b)), /x\/a can't be decoded/);
});
