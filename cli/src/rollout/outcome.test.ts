import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutResourceState } from "@forage/proto/forage/operator/v1/operator";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { EXIT } from "../exit-code.ts";
import { isOver, outcomeOf, type ResourceState, worst } from "./outcome.ts";
import { summarize } from "./summary.ts";

const done = aState(RolloutStatus.SUCCEEDED);
const going = aState(RolloutStatus.IN_PROGRESS);
const failed = aState(RolloutStatus.FAILED, "crash");
const unplaced = aState(RolloutStatus.FAILED, "unschedulable");
const rolledBack = aState(RolloutStatus.ROLLED_BACK, "crash");

function aState(status: RolloutStatus, reason = ""): RolloutResourceState {
  const about = { kind: "container_service", name: "web", action: "update" };
  return { ...about, status, message: "", reason, finishedAt: undefined, now: "" };
}

test("returns the exit code of the worst resource", () => {
  const cases: [readonly ResourceState[], number][] = [
    [[], EXIT.ok],
    [[done, done], EXIT.ok],
    [[done, failed], EXIT.failed],
    [[done, unplaced], EXIT.notPlaced],
    [[unplaced, failed], EXIT.failed],
    [[rolledBack, unplaced], EXIT.rolledBack],
    [[rolledBack, failed], EXIT.failed],
    [[{ ...unplaced, reason: "" }], EXIT.failed],
  ];
  for (const [states, code] of cases) assert.equal(outcomeOf(states), code);
  assert.equal(worst([EXIT.ok, EXIT.timedOut]), EXIT.timedOut);
  assert.deepEqual(
    [EXIT.ok, EXIT.failed, EXIT.notPlaced, EXIT.rolledBack, EXIT.timedOut, EXIT.interrupted],
    [0, 1, 2, 3, 4, 130],
  );
});

test("treats a rollout as ended if it is marked so or if all its resources have ended", () => {
  assert.equal(isOver({ finished: true, resources: [] }), true);
  assert.equal(isOver({ finished: false, resources: [] }), false);
  assert.equal(isOver({ finished: false, resources: [done, failed] }), true);
  assert.equal(isOver({ finished: false, resources: [done, going] }), false);
});

test("summarizes a rollout in one line", () => {
  const rollout = { rolloutId: "r-1", namespace: "a", createdAt: undefined, finished: true };
  const cases: [ReturnType<typeof aState>[], boolean, number | undefined, string][] = [
    [[done], true, 1234, "rollout r-1 done: 1 resource in 1.2s"],
    [[done, done], true, 75_000, "rollout r-1 done: 2 resources in 1m15s"],
    [[done, failed], true, undefined, "rollout r-1 failed: container_service/web (1 of 2 resources)"],
    [[unplaced], true, undefined, "rollout r-1 not placed: container_service/web (1 of 1 resource)"],
    [[rolledBack], true, undefined, "rollout r-1 rolled back: container_service/web (1 of 1 resource)"],
    [[going, done], false, undefined, "rollout r-1 is in progress: 1 of 2 resources ended"],
  ];
  for (const [resources, finished, tookMs, text] of cases) {
    assert.equal(summarize({ ...rollout, finished, resources }, tookMs), text);
  }
});
