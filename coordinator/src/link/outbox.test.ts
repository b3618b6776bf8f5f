import assert from "node:assert/strict";
import { test } from "node:test";
import type { AssignmentDelta, AssignmentSnapshot, PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { aPod } from "../../test/support/entries.ts";
import { randomOf } from "../../test/support/random.ts";
import type { PodEntry } from "../state/entries.ts";
import { assignmentRevision, deltaOf, type Sent, snapshotOf } from "./outbox.ts";

test("a snapshot and the deltas after it always add up to what is assigned", () => {
  for (let seed = 0; seed < 100; seed++) {
    const random = randomOf(seed);
    const sent: Sent = new Map();
    let pods: PodEntry[] = [];
    let revision = 0;
    const change = (): void => {
      revision++;
      const name = `p${random.below(6)}`;
      const others = pods.filter((pod) => pod.record.name !== name);
      const stopping = random.chance(0.3);
      pods = random.chance(0.3) ? others : [...others, aPod({ name, revision, stopping })];
    };
    const agent = new Map<string, PodAssignment>();
    for (let i = 0; i < random.below(5); i++) change();
    take(agent, snapshotOf(pods, BigInt(revision), sent));
    for (let step = 0; step < 20; step++) {
      for (let i = 0; i < random.below(4); i++) change();
      const delta = deltaOf(pods, BigInt(revision), sent);
      if (delta !== undefined) take(agent, delta);
      const expected = pods.map(({ record }) => [record.uid, record.stoppingSince !== undefined]);
      const has = [...agent.values()].map(({ uid, stopping }) => [uid, stopping]);
      assert.deepEqual(has.sort(), expected.sort(), `seed ${seed} step ${step}`);
      assert.equal(deltaOf(pods, BigInt(revision), sent), undefined, "nothing is sent twice");
    }
  }
});

test("an assignment holds all that a host needs", () => {
  const pod = aPod({ name: "web-1", labels: { a: "b" }, hash: "abc", stopping: true });
  const [assignment] = snapshotOf([pod], 7n, new Map()).pods;
  const { record } = pod;
  assert.deepEqual(assignment, {
    uid: "uid-web-1",
    namespace: "shop",
    name: "web-1",
    workloadKind: "container_service",
    workloadName: "web",
    labels: { a: "b" },
    template: record.template,
    specHash: "abc",
    createdAt: record.createdAt,
    stopping: true,
  });
});

test("a second snapshot forgets what the first one sent", () => {
  const sent: Sent = new Map();
  snapshotOf([aPod({ name: "a" })], 1n, sent);
  snapshotOf([aPod({ name: "b" })], 2n, sent);
  assert.deepEqual([...sent.keys()], ["uid-b"]);
});

test("revisions grow with the store's, and more with each restore", () => {
  assert.ok(assignmentRevision(1, 2) > assignmentRevision(1, 1));
  assert.ok(assignmentRevision(2, 1) > assignmentRevision(1, 2 ** 40 - 1));
});

function take(agent: Map<string, PodAssignment>, message: AssignmentSnapshot | AssignmentDelta): void {
  if ("pods" in message) {
    agent.clear();
    for (const pod of message.pods) agent.set(pod.uid, pod);
    return;
  }
  for (const uid of message.removals) {
    assert.ok(agent.has(uid), "only what was sent is removed");
    agent.delete(uid);
  }
  for (const pod of message.upserts) agent.set(pod.uid, pod);
}
