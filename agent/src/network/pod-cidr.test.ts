import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePodCidr, parsePodCidr6 } from "./pod-cidr.ts";

test("normalises a pod network, whose first address is the gateway", () => {
  const cidr = parsePodCidr("10.64.3.7/16");
  assert.equal(cidr.text, "10.64.0.0/16");
  assert.equal(cidr.gateway, "10.64.0.1");
  assert.equal(cidr.last - cidr.first, 65_535n);
  assert.equal(parsePodCidr("192.168.255.240/28").gateway, "192.168.255.241");
});

test("rejects text that is not a pod network", () => {
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

test("normalises an IPv6 pod network, whose first address is the gateway", () => {
  const cidr = parsePodCidr6("FD64:0:0:0::7/64");
  assert.equal(cidr.text, "fd64::/64");
  assert.equal(cidr.gateway, "fd64::1");
  assert.equal(cidr.last - cidr.first, 2n ** 64n - 1n);
  assert.equal(parsePodCidr6("fd00:10:64::1:ff00/120").gateway, "fd00:10:64::1:ff01");
});

test("rejects text that is not an IPv6 pod network", () => {
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
