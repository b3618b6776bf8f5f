import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeHealth } from "./entries.ts";
import { recordContact } from "./record-contact.ts";

test("a heartbeat changes its time and what it measured, and nothing else", () => {
  const health: NodeHealth = { ready: true, message: "", sinceMs: 5, lastSeenMs: undefined };
  const usage = { cpuMilli: 250, memoryBytes: 1024 };
  const traffic = { requests: 7, errors: 1 };
  recordContact(health, { lastSeenMs: 10, usage, traffic });
  assert.deepEqual(health, { ready: true, message: "", sinceMs: 5, lastSeenMs: 10, usage, traffic });
  // Other messages of the agent measure nothing.
  recordContact(health, { lastSeenMs: 11 });
  assert.deepEqual(health, { ready: true, message: "", sinceMs: 5, lastSeenMs: 11, usage, traffic });
});

test("the previous measurements stay as they were for those that compare them", () => {
  const before = { requests: 7, errors: 1 };
  const health: NodeHealth = { ready: true, message: "", lastSeenMs: 10, traffic: before };
  recordContact(health, { lastSeenMs: 11, traffic: { requests: 9, errors: 1 } });
  assert.equal(health.traffic?.requests, 9);
  assert.deepEqual(before, { requests: 7, errors: 1 });
});
