import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { containsIp, formatIp, normalIp, overlaps, parseCidr, parseIp } from "./ip.ts";

test("rejects text that is not an address", () => {
  for (const text of [
    "",
    "10.0.0",
    "010.0.0.1",
    "0x0a.0.0.1",
    "167772161",
    "10.0.0.256",
    "fe80::1%eth0",
    ":::",
    "1::2::3",
    "::ffff:192.0.2.1",
    "[::1]",
  ])
    assert.equal(parseIp(text), undefined, text);
});

test("parsing and formatting preserve any address", () => {
  for (let round = 0n; round < 500n; round += 1n) {
    const value = (round * 0x9e3779b97f4a7c15f39cc0605cedc835n) % 2n ** 128n;
    for (const ip of [
      { family: 6, value },
      { family: 4, value: value % 2n ** 32n },
    ] as const)
      assert.deepEqual(parseIp(formatIp(ip)), ip);
  }
});

test("normalises a subnet", () => {
  for (const [text, expected] of [
    ["10.64.3.7/16", "10.64.0.0/16"],
    ["10.64.3.7", "10.64.3.7/32"],
    ["FD64:0:0:0::7/64", "fd64::/64"],
    ["::/0", "::/0"],
  ] as const)
    assert.equal(parseCidr(text)?.text, expected, text);
  for (const text of [
    "",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/",
    "10.0.0.0/1x",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "a/8",
  ])
    assert.equal(parseCidr(text), undefined, text);
});

test("an address is in a subnet or not, in any notation", () => {
  for (const [subnet, address, expected] of [
    ["200.64.0.0/16", "200.64.0.0", true],
    ["200.64.0.0/16", "200.64.255.255", true],
    ["200.64.0.0/16", "200.63.255.255", false],
    ["200.64.0.0/16", "200.65.0.0", false],
    ["0.0.0.0/0", "::1", false],
    ["200.64.0.0/16", "x", false],
    ["fd64::/112", "fd64:0::0:ffff", true],
    ["fd64::/112", "FD64::1", true],
    ["fd64::/112", "fd64::1:0", false],
    ["fd64::/112", "fd63::1", false],
    ["::/0", "10.64.0.1", false],
    ["fd64::/112", "fd64::/112", false],
  ] as const) {
    const cidr = parseCidr(subnet);
    assert.ok(cidr);
    assert.equal(containsIp(cidr, address), expected, `${subnet} ${address}`);
  }
});

test("subnets overlap if they share an address", () => {
  for (const [a, b, expected] of [
    ["10.0.0.0/16", "10.0.255.0/24", true],
    ["10.0.0.0/24", "10.0.0.0/8", true],
    ["10.0.0.0/24", "10.0.1.0/24", false],
    ["10.0.0.0/24", "10.0.0.9", true],
    ["fd00::/8", "fd64::/64", true],
    ["fd64::/64", "fd64::ffff", true],
    ["fd64::/65", "fd64:0:0:0:8000::/65", false],
    ["::/0", "fd64::/64", true],
    ["::/0", "0.0.0.0/0", false],
  ] as const) {
    const [first, second] = [parseCidr(a), parseCidr(b)];
    assert.ok(first && second);
    assert.equal(overlaps(first, second), expected, `${a} ${b}`);
    assert.equal(overlaps(second, first), expected, `${b} ${a}`);
  }
});

test("an address has one normal text", () => {
  for (const text of ["fd96::5", "FD96:0:0::0005", "fd96:0:0:0:0:0:0:5"])
    assert.equal(normalIp(text), "fd96::5");
  for (const text of ["10.96.0.5", "::ffff:10.96.0.5", "::FFFF:a60:5"])
    assert.equal(normalIp(text), "10.96.0.5");
  assert.equal(normalIp("nowhere"), "nowhere");
});

describe("formats addresses as the kernel does", () => {
  for (const [given, written] of [
    ["192.0.2.1", "192.0.2.1"],
    ["2001:0DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"],
    ["2001:db8:1:1:1:1:0:1", "2001:db8:1:1:1:1:0:1"],
    ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["::", "::"],
    ["::1", "::1"],
    ["fd00::", "fd00::"],
  ] as const) {
    test(given, () => {
      const ip = parseIp(given);
      assert.ok(ip);
      assert.equal(formatIp(ip), written);
    });
  }
});
