import assert from "node:assert/strict";
import { test } from "node:test";
import { accessTableText, type PodAccess } from "./access-rules.ts";
import { instanceNames } from "./instance-names.ts";

const OPEN: PodAccess = { metadata: true, host: undefined };
const DNS = { protocol: "udp", port: 53 } as const;

test("rejects traffic to metadata addresses on both paths, except DNS", () => {
  const text = textOf({ ...OPEN, metadata: false }, 4);
  const rule = /ip daddr @metadata meta l4proto \{ tcp, udp \} th dport != 53 reject with icmp/g;
  assert.equal(text.match(rule)?.length, 2);
  assert.match(text, /elements = \{ 169\.254\.169\.254, /);
  assert.match(
    textOf({ ...OPEN, metadata: false }, 6),
    /ip6 daddr @metadata .* reject with icmpv6 type admin-prohibited/,
  );
});

test("there are no rules if everything is allowed", () => {
  for (const family of [4, 6] as const) assert.doesNotMatch(textOf(OPEN, family), /reject|drop/);
});

test("a restricted host accepts the listed ports, at the bridge's address of that family or at all addresses", () => {
  const host = { onBridge: [DNS], everywhere: [{ protocol: "tcp", port: 443 }] } as const;
  const four = textOf({ metadata: true, host }, 4);
  assert.match(four, /ip daddr 10\.64\.0\.1 udp dport 53 accept\n {4}tcp dport 443 accept\n {4}reject/);
  assert.doesNotMatch(four, /ip6|fd64/);
  const six = textOf({ metadata: true, host }, 6);
  assert.match(six, /ip6 daddr fd64::1 udp dport 53 accept\n {4}tcp dport 443 accept\n {4}reject/);
  assert.match(six, /meta l4proto ipv6-icmp accept/);
});

function textOf(access: PodAccess, family: 4 | 6): string {
  return accessTableText({ names: instanceNames("x"), access, gateways: ["10.64.0.1", "fd64::1"] }, family);
}
