import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { toTcpAddress } from "./address.ts";

describe("converts IPv4 addresses to numbers, most significant byte first", () => {
  for (const [host, value] of [
    ["10.0.0.1", 0x0a000001],
    ["0.0.0.0", 0],
    ["255.255.255.255", 0xffffffff],
    ["192.0.2.33", 0xc0000221],
  ] as const) {
    test(host, () =>
      assert.deepEqual(toTcpAddress(host, 80), { ip: { ip: { $case: "ipv4", value } }, port: 80 }),
    );
  }
});

describe("converts IPv6 addresses to two numbers of four groups each", () => {
  for (const [host, first, last] of [
    ["::", 0n, 0n],
    ["::1", 0n, 1n],
    ["2001:db8::7", 0x20010db800000000n, 7n],
    ["2001:db8:1:2:3:4:5:6", 0x20010db800010002n, 0x0003000400050006n],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 2n ** 64n - 1n, 2n ** 64n - 1n],
    ["1::", 0x0001000000000000n, 0n],
    ["::ffff:192.0.2.33", 0n, 0x0000ffffc0000221n],
  ] as const) {
    test(host, () => {
      const value = { first, last };
      assert.deepEqual(toTcpAddress(host, 443), { ip: { ip: { $case: "ipv6", value } }, port: 443 });
    });
  }
});

test("returns undefined for other texts", () => {
  for (const host of ["", "localhost", "10.0.0", "10.0.0.256", "example.com", "1.2.3.4.5", ":::"])
    assert.equal(toTcpAddress(host, 80), undefined);
});
