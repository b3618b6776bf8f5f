import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RolloutPlay } from "../../../test/support/rollout-play.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { rolloutView } from "./rollout-view.ts";

const DEADLINE_MS = 600_000;
const FOUR = { scaling: { replicas: 4 } };

/** Returns a rollout with four pods of app:v1, p0 to p3, that have succeeded. */
function running(): RolloutPlay {
  const play = new RolloutPlay();
  play.apply("app:v1", FOUR);
  play.finish();
  return play;
}

function count(play: RolloutPlay, image: string): number {
  return play.picture().filter((line) => line.includes(`${image} `) && !line.endsWith("stopping")).length;
}

describe("a paused rollout", () => {
  test("replaces no pods for a new revision", () => {
    const play = running();
    play.decide({ paused: true });
    play.apply("app:v2", FOUR);
    assert.deepEqual(play.finish(), ["start revision 2"]);
    assert.equal(count(play, "app:v1"), 4);
  });

  test("replaces lost pods with pods of their revision, and scales", () => {
    const play = running();
    play.decide({ paused: true });
    play.apply("app:v2", FOUR);
    play.finish();
    play.vanishes("p0");
    assert.deepEqual(play.settle(), ["create 1 app:v1"]);
    play.apply("app:v2", { scaling: { replicas: 6 } });
    assert.deepEqual(play.settle(), ["start revision 2", "create 2 app:v1"]);
  });

  test("holds a rollout in progress, which neither its deadline nor a crash ends", () => {
    const play = running();
    play.apply("app:v2", FOUR);
    play.settle();
    play.decide({ paused: true });
    play.crashes("p4");
    play.nowMs += 10 * DEADLINE_MS;
    assert.deepEqual(play.settle(), []);
    assert.equal(count(play, "app:v1"), 3);
    assert.equal(play.state(), "PROGRESSING");
    play.decide({ paused: false });
    play.finish();
    assert.equal(play.state(), "ROLLED_BACK");
  });

  test("doesn't replace pods that failed before", () => {
    const play = running();
    play.crashes("p0");
    play.decide({ paused: true });
    play.apply("app:v2", FOUR);
    assert.deepEqual(play.settle(), ["start revision 2"]);
  });

  test("stops no pods with the strategy Recreate", () => {
    const play = running();
    play.decide({ paused: true });
    play.apply("app:v2", { ...FOUR, updateStrategy: { type: "Recreate" } });
    assert.deepEqual(play.finish(), ["start revision 2"]);
    play.decide({ paused: false });
    play.finish();
    assert.equal(count(play, "app:v2"), 4);
  });
});

describe("a canary", () => {
  const canary = (value: string) => ({ "forage.dev/canary": value });

  test("is paused after its number of pods until it is promoted, without a deadline", () => {
    const play = running();
    play.apply("app:v2", FOUR, canary("1"));
    play.finish();
    assert.deepEqual([count(play, "app:v1"), count(play, "app:v2")], [3, 1]);
    assert.equal(rolloutView(play.input())?.waitsForPromotion, true);
    play.nowMs += 10 * DEADLINE_MS;
    assert.deepEqual(play.finish(), []);
    play.decide({ attempt: { ...play.attempt, promoted: true, progressedAt: toTimestamp(play.nowMs) } });
    play.finish();
    assert.deepEqual([count(play, "app:v2"), play.state()], [4, "SUCCEEDED"]);
  });

  test("rounds its share of the replicas up", () => {
    const play = running();
    play.apply("app:v2", FOUR, canary("30%"));
    play.finish();
    assert.equal(count(play, "app:v2"), 2);
  });

  for (const [share, replicas] of [
    ["4", 4],
    ["100%", 4],
    ["1", 0],
  ] as const)
    test(`of ${share} with ${replicas} replicas doesn't hold, because it covers all replicas`, () => {
      const play = running();
      play.apply("app:v2", { scaling: { replicas } }, canary(share));
      play.evaluate();
      assert.deepEqual(rolloutView(play.input())?.hold, { type: "none" });
      play.finish();
      assert.deepEqual([count(play, "app:v2"), play.state()], [replicas, "SUCCEEDED"]);
    });

  test("replaces lost pods with pods of their revision", () => {
    const play = running();
    play.apply("app:v2", FOUR, canary("1"));
    play.finish();
    const ready = (image: string) =>
      play
        .picture()
        .find((line) => line.includes(image))
        ?.split(" ")[0] ?? "";
    play.vanishes(ready("app:v1"));
    assert.deepEqual(play.settle(), ["create 1 app:v1"]);
    play.runAll();
    play.vanishes(ready("app:v2"));
    assert.deepEqual(play.settle(), ["create 1 app:v2"]);
  });

  test("is rolled back if it crashes while it waits for its promotion", () => {
    const play = running();
    play.apply("app:v2", FOUR, canary("1"));
    play.finish();
    const name =
      play
        .picture()
        .find((line) => line.includes("app:v2"))
        ?.split(" ")[0] ?? "";
    play.crashes(name);
    play.finish();
    assert.deepEqual([count(play, "app:v1"), play.state()], [4, "ROLLED_BACK"]);
  });

  test("is rolled back at the deadline if its pods don't become ready", () => {
    const play = running();
    play.apply("app:v2", FOUR, canary("1"));
    play.settle();
    play.nowMs += DEADLINE_MS;
    play.settle();
    assert.match(play.state(), /ROLL/);
  });

  test("doesn't hold without a good revision, or when only the number of replicas changes", () => {
    const play = new RolloutPlay();
    play.apply("app:v1", FOUR, canary("1"));
    play.finish();
    assert.deepEqual([count(play, "app:v1"), play.state()], [4, "SUCCEEDED"]);
    play.apply("app:v2", FOUR);
    play.finish();
    play.apply("app:v2", { scaling: { replicas: 8 } }, canary("1"));
    assert.deepEqual(play.settle(), ["start revision 2", "create 4 app:v2"]);
  });

  test("stops old pods first without surge", () => {
    const play = running();
    const spec = { ...FOUR, updateStrategy: { rollingUpdate: { maxSurge: "0", maxUnavailable: "1" } } };
    play.apply("app:v2", spec, canary("2"));
    play.finish();
    assert.deepEqual([count(play, "app:v1"), count(play, "app:v2")], [2, 2]);
  });
});

describe("a new revision during a rollout", () => {
  test("supersedes the rollout, and replaces the pods of the intermediate revision first", () => {
    const play = running();
    play.apply("app:v2", FOUR);
    play.settle();
    play.runAll();
    play.settle();
    const between = play
      .picture()
      .filter((line) => line.includes("app:v2"))
      .map((line) => line.split(" ")[0]);
    assert.ok(between.length > 0);
    play.apply("app:v3", FOUR);
    play.settle();
    play.runAll();
    const stopped = play
      .settle()
      .filter((step) => step.startsWith("stop"))
      .map((step) => step.slice(5));
    assert.ok(stopped.length > 0);
    for (const name of stopped) assert.ok(between.includes(name), `${name} isn't one of ${between}`);
    play.finish();
    assert.deepEqual([count(play, "app:v3"), play.pods.length, play.state()], [4, 4, "SUCCEEDED"]);
  });

  test("is rolled back to the last good revision, not to the intermediate one", () => {
    const play = running();
    play.apply("app:v2", FOUR);
    play.settle();
    play.apply("app:v3", FOUR);
    play.settle();
    const name =
      play
        .picture()
        .find((line) => line.includes("app:v3"))
        ?.split(" ")[0] ?? "";
    play.crashes(name);
    play.finish();
    assert.deepEqual([count(play, "app:v1"), play.pods.length, play.state()], [4, 4, "ROLLED_BACK"]);
    assert.equal(play.attempt.rolledBackTo, 1);
  });

  test("starts at once during a rollback", () => {
    const play = running();
    play.apply("app:v2", FOUR);
    play.settle();
    play.crashes("p4");
    play.evaluate();
    assert.equal(play.state(), "ROLLING_BACK");
    play.apply("app:v3", FOUR);
    play.finish();
    assert.deepEqual([count(play, "app:v3"), play.pods.length, play.state()], [4, 4, "SUCCEEDED"]);
  });
});

describe("the revision history", () => {
  test("keeps ten revisions, and the last good one however old it is", () => {
    const play = running();
    for (let version = 2; version <= 20; version++) {
      play.apply(`app:bad${version}`, FOUR, { "forage.dev/rollback": "off" });
      play.settle();
    }
    const numbers = play.revisions.map(({ number }) => number).sort((a, b) => a - b);
    assert.deepEqual(numbers, [1, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  });

  test("gives a revision that is applied again a new number, which is not good before it succeeds", () => {
    const play = running();
    play.apply("app:v2", FOUR);
    play.finish();
    play.apply("app:v1", FOUR);
    play.settle();
    assert.deepEqual(
      play.revisions.map(({ number, good }) => [number, good]),
      [
        [2, true],
        [3, false],
      ],
    );
    play.finish();
    assert.equal(play.revisions.find(({ number }) => number === 3)?.good, true);
  });

  test("has no new revision after a change of replicas or of the change cause", () => {
    const play = running();
    play.apply("app:v1", { scaling: { replicas: 5 } }, { "forage.dev/change-cause": "More" });
    play.finish();
    assert.deepEqual(
      play.revisions.map(({ number, good, changeCause }) => [number, good, changeCause]),
      [[1, true, "More"]],
    );
    assert.equal(play.pods.length, 5);
  });
});
