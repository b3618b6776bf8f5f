import assert from "node:assert/strict";
import { test } from "node:test";
import { RolloutPlay } from "../../../test/support/rollout-play.ts";
import { CoordinatorError } from "../../errors.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { rolloutChange } from "./rollout-change.ts";

type Action = Parameters<typeof rolloutChange>[0]["action"];

/** Returns a rollout of app:v1 with a canary and then app:v2, which both succeeded. */
function twice(): RolloutPlay {
  const play = new RolloutPlay();
  play.apply("app:v1", { scaling: { replicas: 2 } }, { "forage.dev/canary": "1", "example.com/a": "b" });
  play.finish();
  play.apply("app:v2", { scaling: { replicas: 3 } });
  play.finish();
  return play;
}

function change(play: RolloutPlay, action: Action) {
  const revisions = [...play.revisions].sort((a, b) => b.number - a.number);
  const newestVersion = (name: string) => (name === "secret/token" ? "s2" : "");
  const facts = { entry: play.resource, status: play.status, revisions, newestVersion, nowMs: play.nowMs };
  return rolloutChange({ namespace: "shop", kind: "container_service", name: "web", action }, facts);
}

function refused(play: RolloutPlay, action: Action, code: string): void {
  assert.throws(
    () => change(play, action),
    (error) => error instanceof CoordinatorError && error.code === code,
  );
}

test("undo restores the old template, keeps the number of replicas, and removes the canary", () => {
  const play = twice();
  play.decide({ paused: true });
  const { record, status, message } = change(play, { $case: "undo", value: { toRevision: 0 } });
  const spec = record?.resource?.spec;
  assert.ok(spec?.$case === "containerService");
  assert.equal(spec.value.container?.image, "app:v1");
  assert.equal(spec.value.scaling?.replicas, 3);
  assert.deepEqual(spec.value.podConfig?.annotations, { "example.com/a": "b" });
  assert.deepEqual([status.paused, message], [false, "undone to revision 1"]);
  assert.notEqual(record?.specHash, play.resource.record.specHash);
});

test("undo never selects a failed revision, even if it is the only earlier one", () => {
  const play = new RolloutPlay();
  play.apply("app:v1");
  play.finish();
  play.apply("app:v2");
  play.settle();
  play.crashes(play.pods.find(({ status }) => !status?.ready)?.record.name ?? "");
  play.finish();
  assert.equal(play.state(), "ROLLED_BACK");
  play.apply("app:v1");
  play.finish();
  assert.equal(play.attempt.revision, 3);
  assert.throws(
    () => change(play, { $case: "undo", value: { toRevision: 0 } }),
    /has no revision before 3 that succeeded and differs from it; to return to a revision that did not succeed, set --to-revision/,
  );
  assert.equal(change(play, { $case: "undo", value: { toRevision: 2 } }).message, "undone to revision 2");
});

test("undo skips revisions that differ from the effective one only in a restart", () => {
  const play = twice();
  const [first, second] = play.revisions;
  assert.ok(first && second);
  play.revisions = [first, { ...second, number: 3 }, { ...second, number: 2, restartedAt: toTimestamp(1) }];
  play.decide({ attempt: { ...play.attempt, revision: 3 } });
  const { message } = change(play, { $case: "undo", value: { toRevision: 0 } });
  assert.equal(message, "undone to revision 1");
});

test("undo pins objects to the versions of the revision's pods until the objects change again", () => {
  const play = twice();
  const [first, second] = play.revisions;
  assert.ok(first && second);
  const versions = { "secret/token": "s1", "config_map/gone": "c1" };
  play.revisions = [{ ...second, number: 1, templateHash: "with s1", objectVersions: versions }, second];
  const { message, record } = change(play, { $case: "undo", value: { toRevision: 0 } });
  assert.equal(
    message,
    "undone to revision 1, with secret/token, config_map/gone at its versions until they change again",
  );
  assert.deepEqual(record?.pinnedVersions, {
    "secret/token": { version: "s1", insteadOf: "s2" },
    "config_map/gone": { version: "c1", insteadOf: "" },
  });
});

test("refuses a change that has no effect", () => {
  const play = twice();
  refused(play, undefined, "INVALID");
  refused(play, { $case: "undo", value: { toRevision: 2 } }, "FAILED_PRECONDITION");
  refused(play, { $case: "undo", value: { toRevision: 9 } }, "NOT_FOUND");
  refused(play, { $case: "resume", value: {} }, "FAILED_PRECONDITION");
  refused(play, { $case: "promote", value: {} }, "FAILED_PRECONDITION");
});

test("refuses a restart during a rollback, and allows an undo to the effective revision", () => {
  const play = twice();
  play.apply("app:v3");
  play.settle();
  play.crashes(play.pods.find(({ status }) => !status?.ready)?.record.name ?? "");
  play.finish();
  assert.equal(play.attempt.rolledBackTo, 2);
  refused(play, { $case: "restart", value: {} }, "FAILED_PRECONDITION");
  assert.equal(change(play, { $case: "undo", value: { toRevision: 2 } }).message, "undone to revision 2");
});
