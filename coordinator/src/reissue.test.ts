import assert from "node:assert/strict";
import { test } from "node:test";
import { isReissueDue } from "./reissue.ts";

const HOUR_MS = 3_600_000;
const ISSUED = { wallMs: 1_000 * HOUR_MS, monotonicMs: 0 };
const after = (ms: number, setByMs = 0) => ({ wallMs: ISSUED.wallMs + ms + setByMs, monotonicMs: ms });

test("a server certificate is issued again after half of its life", () => {
  assert.equal(isReissueDue(ISSUED, after(15 * 24 * HOUR_MS - 1)), false);
  assert.equal(isReissueDue(ISSUED, after(15 * 24 * HOUR_MS)), true);
});

test("a server certificate is issued again once the wall clock was set, in either direction", () => {
  assert.equal(isReissueDue(ISSUED, after(60_000, -HOUR_MS)), true);
  assert.equal(isReissueDue(ISSUED, after(60_000, HOUR_MS)), true);
  assert.equal(isReissueDue(ISSUED, after(60_000, 2_000)), false);
});
