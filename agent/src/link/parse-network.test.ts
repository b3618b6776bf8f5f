import assert from "node:assert/strict";
import { test } from "node:test";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { parseNetwork } from "./parse-network.ts";

type Given = Parameters<typeof PodConfig.fromPartial>[0];

test("by default a pod has its own network, and the cluster's search domains come first", () => {
  const nothing = {
    hostNetwork: false,
    dnsPolicy: "ClusterFirst",
    nameservers: [],
    searches: [],
    options: [],
  };
  assert.deepEqual(parseNetwork(undefined), nothing);
  assert.deepEqual(parse({}), nothing);
});

test("applies all settings", () => {
  const dnsConfig = {
    nameservers: ["192.0.2.1", "2001:db8::1"],
    searches: ["a.example", "."],
    options: [{ name: "ndots", value: "2" }, { name: "rotate" }],
  };
  assert.deepEqual(parse({ hostNetwork: true, dnsPolicy: "None", dnsConfig }), {
    hostNetwork: true,
    dnsPolicy: "None",
    nameservers: ["192.0.2.1", "2001:db8::1"],
    searches: ["a.example", "."],
    options: ["ndots:2", "rotate"],
  });
});

for (const [what, given, problem] of [
  ["a policy of its own", { dnsPolicy: "Fastest" }, /"Fastest" is neither/],
  ["None without a server", { dnsPolicy: "None", dnsConfig: { searches: ["a"] } }, /needs dns_config/],
  ["a server's name", { dnsConfig: { nameservers: ["ns.example"] } }, /nameservers: "ns.example" is not an/],
  ["a line in a domain", { dnsConfig: { searches: ["a\nnameserver 1.2.3.4"] } }, /is not a domain/],
  ["a line in an option", { dnsConfig: { options: [{ name: "ndots", value: "1\n" }] } }, /is not an option/],
] as const) {
  test(`rejects DNS with ${what}`, () => assert.throws(() => parse(given as unknown as Given), problem));
}

function parse(config: Given) {
  return parseNetwork(PodConfig.fromPartial(config));
}
