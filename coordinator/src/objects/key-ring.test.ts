import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { KeyRing } from "./key-ring.ts";

const old = { id: "old", bytes: randomBytes(32) };
const fresh = { id: "fresh", bytes: randomBytes(32) };
const PLACE = "object-versions/shop/secret/db/1";
const canary = Buffer.from("hunter2-canary");

test("decrypts a value only at its own place, and encrypts the same value differently each time", () => {
  const ring = new KeyRing([fresh], randomBytes);
  const [a, b] = [ring.seal(canary, PLACE), ring.seal(canary, PLACE)];
  assert.deepEqual(ring.open(a, PLACE), canary);
  assert.equal(a.keyId, "fresh");
  assert.notDeepEqual(a.ciphertext, b.ciphertext);
  assert.equal(a.ciphertext.includes(canary), false);
  assert.deepEqual(ring.open(ring.seal(new Uint8Array(0), PLACE), PLACE), Buffer.alloc(0));
});

test("encrypts with the first of several keys, and decrypts with all", () => {
  const sealed = new KeyRing([old], randomBytes).seal(canary, PLACE);
  const both = new KeyRing([fresh, old], randomBytes);
  assert.deepEqual(both.open(sealed, PLACE), canary);
  assert.equal(both.seal(canary, PLACE).keyId, "fresh");
  assert.throws(
    () => new KeyRing([fresh], randomBytes).open(sealed, PLACE),
    /encrypted with key old: put it back/,
  );
});

test("rejects a value that was changed, truncated or moved, without quoting it", () => {
  const ring = new KeyRing([fresh], randomBytes);
  const sealed = ring.seal(canary, PLACE);
  const flipped = (bytes: Buffer, at: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy;
  };
  const forgeries = [
    ...sealed.ciphertext.keys().map((at) => ({ ...sealed, ciphertext: flipped(sealed.ciphertext, at) })),
    ...sealed.nonce.keys().map((at) => ({ ...sealed, nonce: flipped(sealed.nonce, at) })),
    ...sealed.ciphertext
      .keys()
      .map((length) => ({ ...sealed, ciphertext: sealed.ciphertext.subarray(0, length) })),
    { ...sealed, nonce: Buffer.alloc(0) },
  ];
  for (const forgery of forgeries) {
    assert.throws(
      () => ring.open(forgery, PLACE),
      (error: Error) => {
        assert.match(error.message, /was changed on disk/);
        assert.equal(error.cause, undefined);
        return true;
      },
    );
  }
  assert.throws(() => ring.open(sealed, "object-versions/shop/secret/other/1"), /was changed on disk/);
  const imposter = new KeyRing([{ id: "fresh", bytes: randomBytes(32) }], randomBytes);
  assert.throws(() => imposter.open(sealed, PLACE), /another key with the id/);
});
