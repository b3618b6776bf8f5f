import assert from "node:assert/strict";
import { test } from "node:test";
import { contains6, normalIpv6, overlaps6, parseIpv6Cidr, parsePodCidr6 } from "./ipv6-cidr.ts";

test("a pod network of IPv6 is normalised and has its gateway first", () => {
  const cidr = parsePodCidr6("FD64:0:0:0::7/64");
  assert.equal(cidr.text, "fd64::/64");
  assert.equal(cidr.gateway, "fd64::1");
  assert.equal(cidr.last - cidr.first, 2n ** 64n - 1n);
  assert.equal(parsePodCidr6("fd00:10:64::1:ff00/120").gateway, "fd00:10:64::1:ff01");
});

test("what is no pod network of IPv6 is refused", () => {
  for (const text of [
    "",
    "fd64::",
    "fd64::/47",
    "fd64::/121",
    "fd64::/64/1",
    "fd64::/6x",
    "fd64::%eth0/64",
    "10.64.0.0/64",
    "fe80::/64",
    "2001:db8::/64",
  ]) {
    assert.throws(() => parsePodCidr6(text), RangeError, text);
  }
});

test("addresses are in it or not, however they are written", () => {
  const cidr = parsePodCidr6("fd64::/112");
  for (const own of ["fd64::", "fd64:0::0:ffff", "FD64::1"]) assert.ok(contains6(cidr, own), own);
  for (const other of ["fd64::1:0", "fd63::1", "10.64.0.1", "::1", "x", "fd64::/112"])
    assert.ok(!contains6(cidr, other), other);
});

test("networks overlap if they share an address", () => {
  const cases: [string, string, boolean][] = [
    ["fd00::/8", "fd64::/64", true],
    ["fd64::/64", "fd64::ffff", true],
    ["fd64::/65", "fd64:0:0:0:8000::/65", false],
    ["::/0", "fd64::/64", true],
  ];
  for (const [a, b, expected] of cases) {
    const [first, second] = [parseIpv6Cidr(a), parseIpv6Cidr(b)];
    assert.ok(first && second);
    assert.equal(overlaps6(first, second), expected, `${a} ${b}`);
    assert.equal(overlaps6(second, first), expected, `${b} ${a}`);
  }
});

test("an address has one text, the kernel's", () => {
  assert.equal(normalIpv6("2001:DB8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
  assert.equal(normalIpv6("0:0:0:0:0:0:0:1"), "::1");
});
