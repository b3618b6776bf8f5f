import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint } from "../endpoints/endpoints.ts";
import { nearEndpoints, zoneLocality } from "./zone.ts";

for (const [what, zones, client, expected] of [
  ["its own, when it has its share", "aabb", "a", "aa"],
  ["its own, when it has more", "aaab", "a", "aaa"],
  ["its own, when it has a little less than its share", "aaaaabbbbbb", "a", "aaaaa"],
  ["all, when its own would be overrun", "abbb", "a", "abbb"],
  ["all, when it has none", "bb", "a", "bb"],
  ["all, when its zone is unknown", "ab", "", "ab"],
  ["all, when an endpoint has no zone", "aab-", "a", "aab-"],
  ["its own of three", "abc", "b", "b"],
  ["none of none", "", "a", ""],
] as const) {
  test(`selects ${what}`, () => {
    const endpoints = [...zones].map((zone) => ({ zone: zone === "-" ? "" : zone }) as Endpoint);
    const near = nearEndpoints(endpoints, client);
    assert.equal(near.map(({ zone }) => zone || "-").join(""), expected);
  });
}

test("marks an endpoint as local, remote or of unknown locality", () => {
  assert.equal(zoneLocality("a", "a"), "local");
  assert.equal(zoneLocality("a", "b"), "remote");
  assert.equal(zoneLocality("", "b"), "unknown");
  assert.equal(zoneLocality("a", ""), "unknown");
});
