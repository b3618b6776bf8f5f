import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODE_RENEW_AT, renewAtMs, renewalState } from "./renewal.ts";

const HOUR_MS = 3_600_000;
const DAY = { notBeforeMs: 0, notAfterMs: 24 * HOUR_MS };

describe("renewal", () => {
  it("is due at two thirds of the lifetime, give or take a tenth", () => {
    assert.equal(renewAtMs(DAY, 0.5), 16 * HOUR_MS);
    assert.equal(renewAtMs(DAY, 0), 14.4 * HOUR_MS);
    assert.ok(Math.abs(renewAtMs(DAY, 1 - 1e-12) - 17.6 * HOUR_MS) <= 1);
  });

  it("is due at a third of a node's lifetime", () => {
    assert.equal(renewAtMs(DAY, 0.5, NODE_RENEW_AT), 8 * HOUR_MS);
    assert.equal(renewalState(DAY, 0.5, 8 * HOUR_MS - 1, NODE_RENEW_AT), "fresh");
    assert.equal(renewalState(DAY, 0.5, 8 * HOUR_MS, NODE_RENEW_AT), "due");
  });

  it("changes from fresh to due to expired", () => {
    assert.equal(renewalState(DAY, 0.5, 16 * HOUR_MS - 1), "fresh");
    assert.equal(renewalState(DAY, 0.5, 16 * HOUR_MS), "due");
    assert.equal(renewalState(DAY, 0.5, 24 * HOUR_MS - 1), "due");
    assert.equal(renewalState(DAY, 0.5, 24 * HOUR_MS), "expired");
  });
});
