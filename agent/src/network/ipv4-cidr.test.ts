import assert from "node:assert/strict";
import { test } from "node:test";
import { contains, overlaps, parseIpv4Cidr, parsePodCidr } from "./ipv4-cidr.ts";

test("a pod network is normalised and has its gateway first", () => {
  const cidr = parsePodCidr("10.64.3.7/16");
  assert.equal(cidr.text, "10.64.0.0/16");
  assert.equal(cidr.gateway, "10.64.0.1");
  assert.equal(cidr.last - cidr.first, 65_535);
  assert.equal(parsePodCidr("192.168.255.240/28").gateway, "192.168.255.241");
});

test("what is no pod network is refused", () => {
  for (const text of [
    "",
    "10.64.0.0",
    "10.0.0.0/7",
    "10.0.0.0/29",
    "10.0.0/16",
    "::/16",
    "10.0.0.0/16/1",
    "10.0.0.0/1x",
  ]) {
    assert.throws(() => parsePodCidr(text), RangeError, text);
  }
});

test("addresses are in it or not", () => {
  const cidr = parsePodCidr("200.64.0.0/16");
  assert.ok(contains(cidr, "200.64.0.0") && contains(cidr, "200.64.255.255"));
  for (const other of ["200.63.255.255", "200.65.0.0", "::1", "x"]) assert.ok(!contains(cidr, other), other);
});

test("networks overlap if they share an address", () => {
  const cases: [string, string, boolean][] = [
    ["10.0.0.0/16", "10.0.255.0/24", true],
    ["10.0.0.0/24", "10.0.0.0/8", true],
    ["10.0.0.0/24", "10.0.1.0/24", false],
    ["10.0.0.0/24", "10.0.0.9", true],
  ];
  for (const [a, b, expected] of cases) {
    const [first, second] = [parseIpv4Cidr(a), parseIpv4Cidr(b)];
    assert.ok(first && second);
    assert.equal(overlaps(first, second), expected, `${a} ${b}`);
    assert.equal(overlaps(second, first), expected, `${b} ${a}`);
  }
});
