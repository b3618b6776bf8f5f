import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { TrailingDigest } from "./trailing-digest.ts";

const BODY = Buffer.from("FORAGE STORE BACKUP 1\n".repeat(20));
const WHOLE = Buffer.concat([BODY, Buffer.from(`${createHash("sha256").update(BODY).digest("hex")}\n`)]);

test("accepts a complete backup in chunks of any size", () => {
  for (const size of [1, 7, 64, 65, 66, WHOLE.length]) assert.equal(isWhole(WHOLE, size), true, `${size}`);
});

test("rejects a truncated, changed or extended backup", () => {
  const changed = Buffer.from(WHOLE);
  changed[3] = 0;
  for (const bytes of [
    WHOLE.subarray(0, -1),
    WHOLE.subarray(0, 100),
    Buffer.alloc(0),
    changed,
    Buffer.concat([WHOLE, Buffer.from("\n")]),
  ])
    assert.equal(isWhole(bytes, 50), false);
});

function isWhole(bytes: Buffer, size: number): boolean {
  const digest = new TrailingDigest();
  for (let at = 0; at < bytes.length; at += size) digest.update(bytes.subarray(at, at + size));
  return digest.matches();
}
