import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePodCidr6 } from "./network/pod-cidr.ts";
import { ownAddresses } from "./own-address.ts";

const podCidr6 = parsePodCidr6("fd64::/64");
const nothing = { advertised: undefined, advertised6: undefined, podCidr6: undefined };

for (const [what, options, expected] of [
  ["the address that leads to the coordinator", { coordinator: "127.0.0.1" }, ["127.0.0.1"]],
  ["what the operator says", { coordinator: "127.0.0.1", advertised: "192.0.2.1" }, ["192.0.2.1"]],
  [
    "both of them",
    { coordinator: "127.0.0.1", advertised: "192.0.2.1", advertised6: "2001:db8::1" },
    ["192.0.2.1", "2001:db8::1"],
  ],
  ["one of IPv6 alone", { coordinator: "127.0.0.1", advertised: "2001:db8::1", podCidr6 }, ["2001:db8::1"]],
  // The loopback address is useless to other hosts.
  ["something, where the coordinator is on this host", { coordinator: "::1" }, ["127.0.0.1"]],
] as const) {
  test(`others reach the host by ${what}`, async () => {
    assert.deepEqual(await ownAddresses({ ...nothing, ...options }), expected);
  });
}
