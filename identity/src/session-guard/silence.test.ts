import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Silence } from "./silence.ts";

const LIMITS = { probeMs: 20_000, answerMs: 10_000 };

describe("silence", () => {
  it("never probes a peer that sends something between the probe times", () => {
    const silence = new Silence(LIMITS, 0);
    for (let beat = 1; beat <= 20; beat++)
      for (const lateMs of [0, 9_000]) assert.equal(silence.visit(beat * 10_000 + lateMs, beat), "none");
  });

  it("probes a silent peer once, and keeps it when it answers", () => {
    const silence = new Silence(LIMITS, 0);
    const steps = [19_999, 20_000, 25_000].map((nowMs) => silence.visit(nowMs, 0));
    assert.deepEqual(steps, ["none", "probe", "none"]);
    assert.deepEqual(
      [29_000, 48_999, 49_000].map((nowMs) => silence.visit(nowMs, 17)),
      ["none", "none", "probe"],
    );
  });

  it("closes a peer that doesn't answer, at the second visit after the answer is due", () => {
    const silence = new Silence(LIMITS, 0);
    const steps = [20_000, 29_999, 30_000, 30_400].map((nowMs) => silence.visit(nowMs, 0));
    assert.deepEqual(steps, ["probe", "none", "none", "close"]);
  });

  it("keeps a peer whose answer is read only after a pause of the process", () => {
    const silence = new Silence(LIMITS, 0);
    assert.equal(silence.visit(20_000, 0), "probe");
    assert.equal(silence.visit(90_000, 0), "none");
    assert.equal(silence.visit(90_400, 17), "none");
    assert.equal(silence.visit(100_400, 17), "none");
  });
});
