import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseIpRange } from "./ip-range.ts";

describe("parses ranges of addresses", () => {
  for (const [text, size, first, last] of [
    ["10.96.0.0/16", 65_534, "10.96.0.1", "10.96.255.254"],
    ["10.96.3.7/24", 254, "10.96.3.1", "10.96.3.254"],
    ["192.0.2.10-192.0.2.12", 3, "192.0.2.10", "192.0.2.12"],
    ["192.0.2.1/32", 1, "192.0.2.1", "192.0.2.1"],
    ["192.0.2.1", 1, "192.0.2.1", "192.0.2.1"],
    ["192.0.2.2/31", 2, "192.0.2.2", "192.0.2.3"],
    ["2001:db8::/120", 254, "2001:db8::1", "2001:db8::fe"],
    ["2001:db8::10 - 2001:db8::11", 2, "2001:db8::10", "2001:db8::11"],
    ["fd00::/64", 2 ** 48, "fd00::1", "fd00::1:0:0:0"],
  ] as const) {
    test(text, () => {
      const range = parseIpRange(text);
      assert.equal(range?.size, size);
      assert.equal(range?.at(0), first);
      assert.equal(range?.at(size - 1), last);
      assert.equal(range?.has(first), true);
      assert.equal(range?.has("8.8.8.8"), false);
      assert.equal(range?.has("::1"), false);
    });
  }
  for (const text of [
    "10.96.0.0/33",
    "10.96.0.0/-1",
    "10.96.0.0/",
    "a/8",
    "192.0.2.9-192.0.2.1",
    "192.0.2.1-2001:db8::1",
    "1.2.3.4-",
    "1.2.3.4-1.2.3.5-1.2.3.6",
    "::1/129",
    "::ffff:192.0.2.1/128",
    "fe80::1%eth0",
    "",
  ]) {
    test(`refuses ${JSON.stringify(text)}`, () => assert.equal(parseIpRange(text), undefined));
  }
});
