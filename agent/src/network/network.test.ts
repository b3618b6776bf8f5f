import assert from "node:assert/strict";
import { test } from "node:test";
import { addressesOf } from "./network.ts";

test("returns an IPv6 address once if it is also the primary address", () => {
  const [ipv4, ipv6] = ["10.64.0.2", "fd00::2"];
  assert.deepEqual(addressesOf({ address: ipv4 }), [ipv4]);
  assert.deepEqual(addressesOf({ address: ipv4, address6: ipv6 }), [ipv4, ipv6]);
  assert.deepEqual(addressesOf({ address: ipv6, address6: ipv6 }), [ipv6]);
});
