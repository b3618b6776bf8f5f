import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RateBudget } from "./rate-budget.ts";

const RATE = { burst: 10, perSecond: 33 };

describe("RateBudget", () => {
  it("is used up by a burst beyond its size", () => {
    const budget = new RateBudget(RATE, 0);
    for (let i = 0; i < 10; i++) assert.equal(budget.spend(0), true);
    assert.equal(budget.spend(0), false);
  });

  it("allows 33 a second for an unlimited time", () => {
    const budget = new RateBudget(RATE, 0);
    for (let i = 1; i <= 10_000; i++) assert.equal(budget.spend((i * 1000) / 33), true);
  });

  it("never saves up more than its size", () => {
    const budget = new RateBudget(RATE, 0);
    for (let i = 0; i < 10; i++) assert.equal(budget.spend(3_600_000), true);
    assert.equal(budget.spend(3_600_000), false);
  });

  it("counts amounts", () => {
    const budget = new RateBudget(RATE, 0);
    assert.equal(budget.spend(0, 10), true);
    assert.equal(budget.spend(0, 1), false);
  });
});
