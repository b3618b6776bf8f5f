import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32c } from "./crc32c.ts";

test("matches the check values of RFC 3720, appendix B.4", () => {
  assert.equal(crc32c(Buffer.from("123456789")), 0xe3069283);
  assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa);
  assert.equal(crc32c(new Uint8Array(32).fill(255)), 0x62a8ab43);
  assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e);
  assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, i) => 31 - i)), 0x113fdb5c);
  assert.equal(crc32c(new Uint8Array(0)), 0);
});

test("gives the same result for parts as for the whole", () => {
  const whole = Uint8Array.from({ length: 61 }, (_, i) => (i * 37) & 255);
  for (let cut = 0; cut <= whole.length; cut++) {
    assert.equal(crc32c(whole.subarray(cut), crc32c(whole.subarray(0, cut))), crc32c(whole));
  }
});

test("detects any single flipped bit", () => {
  const bytes = new Uint8Array(100).fill(0x5a);
  const good = crc32c(bytes);
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = bytes.slice();
    flipped[bit >>> 3] = (flipped[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
    assert.notEqual(crc32c(flipped), good);
  }
});
