import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultPullPolicy } from "./image-reference.ts";

for (const [reference, policy] of [
  ["busybox", "Always"],
  ["busybox:latest", "Always"],
  ["registry:5000/busybox", "Always"],
  ["registry:5000/busybox:latest", "Always"],
  ["busybox:1", "IfNotPresent"],
  ["registry:5000/a/busybox:1.36", "IfNotPresent"],
  [`busybox@sha256:${"0".repeat(64)}`, "IfNotPresent"],
  [`busybox:latest@sha256:${"0".repeat(64)}`, "IfNotPresent"],
] as const) {
  test(`${reference} is pulled ${policy}`, () => assert.equal(defaultPullPolicy(reference), policy));
}
