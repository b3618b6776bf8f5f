import assert from "node:assert/strict";
import { test } from "node:test";
import { isReissueDue } from "./reissue.ts";

const hourMs = 3_600_000;
const issued = { wallMs: 1_000 * hourMs, monotonicMs: 0 };
const after = (ms: number, setByMs = 0) => ({ wallMs: issued.wallMs + ms + setByMs, monotonicMs: ms });

test("a server certificate is issued again after half of its life", () => {
  assert.equal(isReissueDue(issued, after(15 * 24 * hourMs - 1)), false);
  assert.equal(isReissueDue(issued, after(15 * 24 * hourMs)), true);
});

test("a server certificate is issued again once the wall clock was set, in either direction", () => {
  assert.equal(isReissueDue(issued, after(60_000, -hourMs)), true);
  assert.equal(isReissueDue(issued, after(60_000, hourMs)), true);
  assert.equal(isReissueDue(issued, after(60_000, 2_000)), false);
});
