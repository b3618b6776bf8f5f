import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import {
  type AssignmentDelta,
  type AssignmentSnapshot,
  PodAssignment,
} from "@forage/proto/forage/agent/v1/agent";
import { ObjectRecord } from "@forage/proto/forage/store/v1/store";
import { aPod } from "../../test/support/entries.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { ObjectEntry, PodEntry } from "../state/entries.ts";
import { assignmentRevision } from "./assignment-revision.ts";
import { assignmentBytes } from "./assignments.ts";
import { Outbox } from "./outbox.ts";

test("a snapshot and the deltas after it add up to the assigned state, in parts of limited size", () => {
  for (let seed = 0; seed < 100; seed++) {
    const random = randomOf(seed);
    const partBytes = random.pick([1, 300, 1_000_000]);
    const outbox = new Outbox({ assignments, clock: CLOCK, partBytes });
    let pods: PodEntry[] = [];
    let claims: ObjectEntry[] = [];
    let revision = 0;
    const change = (): void => {
      revision++;
      const name = `p${random.below(6)}`;
      const others = pods.filter((pod) => pod.record.name !== name);
      const stopping = random.chance(0.3);
      pods = random.chance(0.3) ? others : [...others, aPod({ name, revision, stopping })];
      const key = `c${random.below(3)}`;
      const known = claims.some((it) => it.key === key);
      if (known && random.chance(0.5)) claims = claims.filter((it) => it.key !== key);
      else if (!known) claims = [...claims, claim(key, revision)];
    };
    const agent = new HollowNode(partBytes);
    for (let i = 0; i < random.below(5); i++) change();
    agent.apply([...outbox.snapshot({ pods, claimRemovals: claims }, BigInt(revision))]);
    for (let step = 0; step < 20; step++) {
      const before = claims;
      for (let i = 0; i < random.below(4); i++) change();
      const requested = { pods, claimRemovals: claims };
      const deltas = [...outbox.delta(requested, BigInt(revision))];
      agent.apply(deltas);
      const expected = pods.map(({ record }) => [record.uid, record.stoppingSince !== undefined]);
      const has = [...agent.pods.values()].map(({ uid, stopping }) => [uid, stopping]);
      assert.deepEqual(has.sort(), expected.sort(), `seed ${seed} step ${step}`);
      const fresh = claims.filter((it) => !before.includes(it)).map(({ key }) => key);
      const sent = deltas.flatMap(({ claimRemovals }) => claimRemovals.map(({ name }) => name));
      assert.deepEqual(sent.sort(), fresh.sort(), `seed ${seed} step ${step}: claim removals are sent once`);
      assert.deepEqual([...outbox.delta(requested, BigInt(revision))], [], "nothing is sent twice");
    }
  }
});

test("a second snapshot contains everything again", () => {
  const outbox = new Outbox({ assignments, clock: CLOCK });
  const snapshot = (name: string) => [...outbox.snapshot({ pods: [aPod({ name })], claimRemovals: [] }, 1n)];
  snapshot("a");
  snapshot("b");
  assert.deepEqual([...outbox.delta({ pods: [aPod({ name: "b" })], claimRemovals: [] }, 2n)], []);
});

test("replaces tokens after four fifths of their lifetime, except those of stopping pods", () => {
  const { time, outbox } = withTokens();
  const pods = [aPod({ name: "a" }), aPod({ name: "b", stopping: true })];
  assert.equal(outbox.tokenDelayMs(), undefined);
  assert.equal([...outbox.snapshot({ pods, claimRemovals: [] }, 1n)].length, 1);
  assert.equal(outbox.tokenDelayMs(), 800);
  time.pass(799);
  assert.equal(outbox.dueTokens(pods), undefined);
  assert.equal(outbox.tokenDelayMs(), 1);
  time.pass(1);
  const [atMs, endsMs] = [time.wallMs, time.wallMs + 1_000];
  assert.deepEqual(outbox.dueTokens(pods), {
    "uid-a": { token: `t${atMs}`, expiresAt: toTimestamp(endsMs) },
  });
  assert.equal(outbox.dueTokens(pods), undefined);
  assert.equal(outbox.tokenDelayMs(), 800);
  assert.equal([...outbox.delta({ pods: [], claimRemovals: [] }, 2n)].length, 1);
  assert.equal(outbox.tokenDelayMs(), undefined, "pods that are gone need none");
});

for (const [what, jumpMs, due] of [
  ["at once after the clock was set back", -6 * 3_600_000, 0],
  ["at once after the clock was set past their end", 3_600_000, 0],
  ["in time after the clock was set ahead a little", 100, 700],
] as const) {
  test(`tokens are replaced ${what}`, () => {
    const { time, outbox } = withTokens();
    const pods = [aPod({ name: "a" })];
    assert.equal([...outbox.snapshot({ pods, claimRemovals: [] }, 1n)].length, 1);
    time.wallMs += jumpMs;
    assert.equal(outbox.tokenDelayMs(), due);
    time.pass(due);
    assert.deepEqual(Object.keys(outbox.dueTokens(pods) ?? {}), ["uid-a"]);
    assert.equal(outbox.tokenDelayMs(), 800);
  });
}

test("replaces tokens in time after the clock was set back slightly", () => {
  const { time, outbox } = withTokens();
  const pods = [aPod({ name: "a" })];
  assert.equal([...outbox.snapshot({ pods, claimRemovals: [] }, 1n)].length, 1);
  time.pass(400);
  time.wallMs -= 300;
  time.pass(400);
  assert.deepEqual(Object.keys(outbox.dueTokens(pods) ?? {}), ["uid-a"]);
});

test("revisions grow with those of the store, and with each restore", () => {
  assert.ok(assignmentRevision(1, 2) > assignmentRevision(1, 1));
  assert.ok(assignmentRevision(2, 1) > assignmentRevision(1, 2 ** 40 - 1));
});

const CLOCK = { nowMs: () => 0, monotonicMs: () => 0 };

/** Returns an outbox of pods whose tokens are valid for one second. */
function withTokens() {
  const time = {
    wallMs: 10 * 3_600_000,
    monotonicMs: 0,
    pass(ms: number) {
      this.wallMs += ms;
      this.monotonicMs += ms;
    },
  };
  const identityToken = () => ({ token: `t${time.wallMs}`, expiresAt: toTimestamp(time.wallMs + 1_000) });
  const outbox = new Outbox({
    assignments: {
      ...assignments,
      of: (pod: PodEntry) => ({ ...assignments.of(pod), identityToken: identityToken() }),
      identityToken,
    },
    clock: { nowMs: () => time.wallMs, monotonicMs: () => time.monotonicMs },
  });
  return { time, outbox };
}

const assignments = {
  fingerprint: ({ revision }: PodEntry) => String(revision),
  of: ({ record }: PodEntry) =>
    PodAssignment.fromPartial({ uid: record.uid, stopping: record.stoppingSince !== undefined }),
  identityToken: () => undefined,
};

function claim(key: string, revision: number): ObjectEntry {
  const name = { namespace: "shop", kind: "claim", name: key } as const;
  return { key, revision, name, record: ObjectRecord.fromPartial(name) };
}

/** A simulated agent that applies the messages. */
class HollowNode {
  pods = new Map<string, PodAssignment>();
  readonly #partBytes: number;

  constructor(partBytes: number) {
    this.#partBytes = partBytes;
  }

  apply(messages: readonly (AssignmentSnapshot | AssignmentDelta)[]): void {
    for (const [index, message] of messages.entries()) {
      const last = index === messages.length - 1;
      assert.equal(message.more, !last, "all but the last say that more follows");
      if ("pods" in message && index === 0) this.pods.clear();
      const pods = "pods" in message ? message.pods : message.upserts;
      const bytes = pods.reduce((sum, pod) => sum + assignmentBytes(pod), 0);
      assert.ok(pods.length <= 1 || bytes <= this.#partBytes);
      for (const pod of pods) this.pods.set(pod.uid, pod);
      for (const uid of "removals" in message ? message.removals : []) {
        assert.ok(this.pods.delete(uid), "only what was sent is removed");
      }
    }
  }
}
