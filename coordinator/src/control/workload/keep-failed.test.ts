import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RolloutPlay } from "../../../test/support/rollout-play.ts";
import { keepFailedPods } from "./keep-failed.ts";
import { planWorkload } from "./plan.ts";
import type { WorkloadInput } from "./workload-input.ts";

const SURGE = {
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "4", maxUnavailable: "0" } },
};
const FOUR = { scaling: { replicas: 4 }, ...SURGE };

/**
 * Returns a rollout whose rollback has begun: p0 to p3 of app:v1 run, p5 of app:bad crashes, and p4, p6 and p7 of app:bad
 * are starting.
 */
function rollingBack(): RolloutPlay {
  const play = new RolloutPlay();
  play.apply("app:v1", FOUR);
  play.finish();
  play.apply("app:bad", FOUR);
  play.settle();
  for (const name of ["p4", "p6", "p7"]) play.waits(name, "ContainerCreating", "");
  play.crashes("p5");
  const [back] = play.evaluate();
  assert.match(back ?? "", /^ROLLING_BACK/);
  return play;
}

function keptBy(play: RolloutPlay, change: Partial<WorkloadInput> = {}): string[] {
  const input = { ...play.input(), ...change };
  return keepFailedPods(planWorkload(input), input).flatMap((step) =>
    step.type === "stop-pod" && step.keep !== undefined ? [step.pod.record.name] : [],
  );
}

describe("keeping failed pods", () => {
  test("keeps three pods of the revision that is rolled back, crashed ones first", () => {
    const kept = keptBy(rollingBack());
    assert.equal(kept.length, 3);
    assert.ok(kept.includes("p5"));
  });

  test("keeps no more than three pods of one rollout attempt", () => {
    assert.deepEqual(keptBy(rollingBack(), { keptPods: 2 }), ["p5"]);
    assert.deepEqual(keptBy(rollingBack(), { keptPods: 3 }), []);
  });

  test("keeps no pod that has not been started, and no ready pod", () => {
    const play = rollingBack();
    play.pods = play.pods.map((pod) => (pod.record.name === "p5" ? { ...pod, status: undefined } : pod));
    for (const name of ["p4", "p6", "p7"]) play.says(name, { ready: true });
    assert.deepEqual(keptBy(play), []);
  });

  test("keeps no pods of a successful update or a deleted workload", () => {
    const play = new RolloutPlay();
    play.apply("app:v1");
    play.settle();
    play.crashes("p0");
    play.apply("app:v2");
    for (let round = 0; round < 5; round++) {
      assert.deepEqual(keptBy(play), []);
      play.evaluate();
    }
    const back = rollingBack();
    const { resource } = back.input();
    assert.ok(resource);
    const deleted = { ...resource, record: { ...resource.record, deleting: true } };
    assert.deepEqual(keptBy(back, { resource: deleted }), []);
  });
});
