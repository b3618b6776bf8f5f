import assert from "node:assert/strict";
import { test } from "node:test";
import { KnownSecrets } from "./known-secrets.ts";

const SECRET = 'hun"ter2/ümlaut?';

test("finds a value in plain text, in JSON, in a URL and in base64 at every offset", () => {
  const known = new KnownSecrets([SECRET]);
  for (const form of [
    SECRET,
    JSON.stringify({ a: SECRET }),
    `https://h/?q=${encodeURIComponent(SECRET)}&b=1`,
  ]) {
    const scrubbed = known.scrub(`before ${form} after`);
    assert.match(scrubbed, /^before .*\[left out\].* after$/);
    assert.doesNotMatch(scrubbed, /hun|ter2|mlaut/);
  }
  for (const user of ["", "a", "ab", "abc", "abcd"]) {
    const encoded = Buffer.from(`${user}:${SECRET}@host`).toString("base64");
    const scrubbed = known.scrub(encoded);
    assert.match(scrubbed, /\[left out\]/, user);
    // At most two characters at each end depend on the neighbours too.
    assert.ok(scrubbed.replace("[left out]", "").length < 16 + user.length, scrubbed);
  }
});

test("leaves other text unchanged", () => {
  const text = "nothing of this is secret, not even hunter or sec";
  assert.equal(new KnownSecrets([SECRET, "sec", ""]).scrub(text), text);
  assert.equal(new KnownSecrets([]).scrub(text), text);
});

test("finds each line of a value, and the whole of a long one", () => {
  const long = Array.from({ length: 500 }, (_, n) => `${n}`).join("-");
  const known = new KnownSecrets([`first line\n  second line\nend`, long]);
  assert.equal(known.scrub("x second line y"), "x [left out] y");
  assert.equal(known.scrub(`<${long}>`), "<[left out]>");
});

test("prefers the longest of several values with the same beginning", () => {
  assert.equal(new KnownSecrets(["secret-1", "secret-1-more"]).scrub("secret-1-more"), "[left out]");
});

test("finds one of ten thousand values with the same beginning in a megabyte", () => {
  const known = new KnownSecrets(Array.from({ length: 10_000 }, (_, n) => `value-${n}-${n * 7_919}`));
  const text = "a line of a log that holds value-of nothing\n".repeat(25_000);
  assert.equal(known.scrub(text), text);
  assert.equal(known.scrub(`${text}value-9999-${9_999 * 7_919}`), `${text}[left out]`);
});
