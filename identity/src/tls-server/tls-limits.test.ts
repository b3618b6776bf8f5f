import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_TLS_LIMITS } from "./tls-limits.ts";

/** The time that an agent waits for its welcome. */
const AGENT_PATIENCE_MS = 15_000;
/** Handshakes of a slowed address, each second. */
const PACED_STARTS = 8;

test("a connection waits at most half of the time that an agent waits for its welcome", () => {
  const { waitMs, maxWaitingPaced } = DEFAULT_TLS_LIMITS;
  assert.ok(waitMs <= AGENT_PATIENCE_MS / 2);
  assert.ok(maxWaitingPaced <= (PACED_STARTS * waitMs) / 1_000);
});
