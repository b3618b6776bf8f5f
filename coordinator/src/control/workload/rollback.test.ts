import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RolloutReason } from "@forage/proto/forage/store/v1/store";
import { RolloutPlay } from "../../../test/support/rollout-play.ts";

const DEADLINE_MS = 600_000;

/** Returns a rollout with two pods of app:v1 that has succeeded. */
function running(spec: object = {}): RolloutPlay {
  const play = new RolloutPlay();
  play.apply("app:v1", spec);
  play.finish();
  assert.equal(play.state(), "SUCCEEDED");
  return play;
}

/** Returns the rollout of `running` after the first pod of app:v2 (p2) was created. */
function changing(annotations: Readonly<Record<string, string>> = {}, spec: object = {}): RolloutPlay {
  const play = running();
  play.apply("app:v2", spec, annotations);
  play.settle();
  return play;
}

test("records the revision of a first rollout, and marks it good once all pods are available", () => {
  const play = new RolloutPlay();
  play.apply("app:v1", {}, { "forage.dev/change-cause": "Open the shop" });
  assert.deepEqual(play.settle(), ["start revision 1", "create 2 app:v1"]);
  const [first] = play.revisions;
  assert.deepEqual([first?.number, first?.good, first?.changeCause], [1, false, "Open the shop"]);
  play.runAll();
  assert.deepEqual(play.settle(), ["SUCCEEDED: 2/2 ready"]);
  assert.equal(play.revisions[0]?.good, true);
});

describe("a revision that fails", () => {
  test("is rolled back by stopping its pods and keeping the old ones", () => {
    const play = changing();
    play.crashes("p2");
    const [back, stop] = play.settle();
    assert.match(back ?? "", /^ROLLING_BACK: roll back to revision 1: 0\/2 ready; pod p2: CrashLoopBackOff/);
    assert.equal(stop, "stop p2");
    assert.deepEqual(play.picture(), ["p0 app:v1 ready", "p1 app:v1 ready", "p2 app:v2 stopping"]);
    assert.equal(play.state(), "ROLLED_BACK");
    assert.equal(play.attempt.reason, RolloutReason.CRASH);
    assert.equal(play.revisions.find(({ number }) => number === 2)?.good, false);
  });

  test("is rolled back with the last specified number of pods", () => {
    const play = running();
    play.apply("app:v2", { scaling: { replicas: 3 } });
    play.settle();
    play.crashes("p2");
    play.finish();
    assert.deepEqual(
      play.picture().map((line) => line.slice(3)),
      Array(3).fill("app:v1 ready"),
    );
    assert.equal(play.state(), "ROLLED_BACK");
  });

  test("stays rolled back when a pod is lost", () => {
    const play = changing();
    play.crashes("p2");
    play.finish();
    play.vanishes("p0");
    assert.deepEqual(play.settle(), ["create 1 app:v1"]);
  });

  test("starts a new attempt when the same content is applied again", () => {
    const play = changing();
    play.crashes("p2");
    play.finish();
    play.apply("app:v2");
    assert.deepEqual(play.settle(), ["start revision 2", "create 1 app:v2"]);
    play.finish();
    assert.equal(play.state(), "SUCCEEDED");
    assert.ok(play.picture().every((line) => line.endsWith("app:v2 ready")));
  });

  for (const [what, annotations, before] of [
    ["when rollback is off", { "forage.dev/rollback": "off" }, true],
    ["when there is no good revision", {}, false],
  ] as const) {
    test(`keeps its failed pods ${what}`, () => {
      const play = before ? changing(annotations) : new RolloutPlay();
      if (!before) {
        play.apply("app:v2", { scaling: { replicas: 1 } });
        play.settle();
      }
      const [broken = ""] = play.pods.filter(({ status }) => !status?.ready).map(({ record }) => record.name);
      play.crashes(broken);
      const done = play.settle();
      assert.equal(done.length, 1);
      assert.match(done[0] ?? "", /^FAILED: 0\/\d ready; pod p\d: CrashLoopBackOff/);
      assert.ok(play.picture().includes(`${broken} app:v2 waiting`));
    });
  }

  test("may still succeed if it was not rolled back", () => {
    const play = changing({ "forage.dev/rollback": "off" });
    play.crashes("p2");
    play.settle();
    assert.equal(play.state(), "FAILED");
    play.finish();
    assert.equal(play.state(), "SUCCEEDED");
  });

  test("gets new pods when it is applied again", () => {
    const play = new RolloutPlay();
    play.apply("app:v1");
    play.settle();
    play.crashes("p0");
    play.settle();
    play.apply("app:v1");
    assert.deepEqual(play.settle(), ["start revision 1", "stop p0", "create 1 app:v1"]);
    assert.equal(play.state(), "PROGRESSING");
  });

  test("keeps the pods of the good revision when the rollback fails too", () => {
    const play = changing();
    play.crashes("p2");
    play.says("p0", { ready: false });
    play.settle();
    assert.equal(play.state(), "ROLLING_BACK");
    play.nowMs += DEADLINE_MS;
    play.settle();
    assert.equal(play.state(), "FAILED");
    assert.match(play.attempt.message, /the rollback to revision 1 fails too/);
    play.finish();
    assert.equal(play.state(), "ROLLED_BACK");
  });

  test("isn't rolled back if it was good before and only additional replicas fail", () => {
    const play = changing();
    play.finish();
    play.apply("app:v2", { scaling: { replicas: 3 } });
    play.settle();
    play.crashes(play.pods.find(({ status }) => !status?.ready)?.record.name ?? "");
    play.finish();
    assert.deepEqual([play.state(), play.attempt.rolledBackTo], ["SUCCEEDED", 0]);
    play.apply("app:v2", { scaling: { replicas: 4 } });
    play.settle();
    play.crashes(play.pods.find(({ status }) => !status?.ready)?.record.name ?? "");
    play.settle();
    assert.equal(play.state(), "FAILED");
    assert.equal(play.picture().filter((line) => line.endsWith("app:v2 ready")).length, 3);
  });

  for (const [reason, expected] of [
    ["ErrImageNotFound", RolloutReason.IMAGE],
    ["ErrImageDenied", RolloutReason.IMAGE],
    ["ErrImageInvalid", RolloutReason.IMAGE],
  ] as const) {
    test(`fails at once with ${reason}`, () => {
      const play = changing();
      play.waits("p2", reason, "registry.example/app:v2");
      play.settle();
      assert.deepEqual([play.state(), play.attempt.reason], ["ROLLED_BACK", expected]);
    });
  }

  test("fails at once with InvalidSpec", () => {
    const play = changing();
    play.says("p2", { phase: 4, reason: "InvalidSpec", message: "no such seccomp profile" });
    play.settle();
    assert.deepEqual([play.state(), play.attempt.reason], ["ROLLED_BACK", RolloutReason.START]);
  });
});

describe("the progress deadline", () => {
  test("rolls back a rollout without progress", () => {
    const play = changing();
    play.nowMs += DEADLINE_MS - 1;
    assert.deepEqual(play.settle(), []);
    play.nowMs += 1;
    play.settle();
    assert.deepEqual([play.state(), play.attempt.reason], ["ROLLED_BACK", RolloutReason.DEADLINE]);
    assert.match(play.attempt.message, /no progress for 600 s, the progress deadline; 1 being placed/);
  });

  test("can be set by annotation", () => {
    const play = changing({ "forage.dev/progress-deadline": "90s" });
    play.nowMs += 90_000;
    play.settle();
    assert.match(play.attempt.message, /no progress for 90 s/);
  });

  test("restarts for each pod that becomes available", () => {
    const play = running({ scaling: { replicas: 4 } });
    play.apply("app:v2", {
      scaling: { replicas: 4 },
      updateStrategy: { rollingUpdate: { maxSurge: "1", maxUnavailable: "0" } },
    });
    for (let rounds = 0; rounds < 4; rounds++) {
      play.settle();
      play.nowMs += DEADLINE_MS - 1;
      assert.deepEqual(play.settle(), []);
      play.runAll();
    }
    play.finish();
    assert.equal(play.state(), "SUCCEEDED");
  });

  test("doesn't restart for a flapping pod", () => {
    const play = running({ scaling: { replicas: 4 } });
    play.apply("app:v2", {
      scaling: { replicas: 4 },
      updateStrategy: { rollingUpdate: { maxSurge: "1", maxUnavailable: "0" } },
    });
    play.settle();
    for (let rounds = 0; rounds < 20; rounds++) {
      play.says("p4", { ready: rounds % 2 === 0 });
      play.settle();
      for (const pod of play.pods) if (pod.record.stoppingSince) play.vanishes(pod.record.name);
      play.nowMs += DEADLINE_MS / 8;
    }
    assert.notEqual(play.state(), "PROGRESSING");
  });

  test("excludes time without a coordinator", () => {
    const play = changing();
    play.nowMs += 2 * DEADLINE_MS;
    play.upSinceMs = play.nowMs;
    assert.deepEqual(play.settle(), []);
    play.nowMs += DEADLINE_MS;
    play.settle();
    assert.equal(play.state(), "ROLLED_BACK");
  });

  test("is six times as long while a registry doesn't answer", () => {
    const play = changing();
    play.waits("p2", "ImagePullBackOff", "registry.example doesn't answer");
    play.nowMs += 6 * DEADLINE_MS - 1;
    assert.deepEqual(play.settle(), []);
    play.nowMs += 1;
    play.settle();
    assert.equal(play.state(), "ROLLED_BACK");
    assert.match(play.attempt.message, /registry.example doesn't answer/);
  });
});

describe("an unschedulable pod", () => {
  const waits = { summary: "0/1 nodes: 1 port in use", sinceMs: 0 };
  test("fails the rollout after the placement limit, counted from the rollout's start", () => {
    const play = changing();
    play.unschedulable.set("uid-p2", waits);
    assert.deepEqual(play.settle(), []);
    play.nowMs += 20_000;
    play.settle();
    assert.deepEqual([play.state(), play.attempt.reason], ["ROLLED_BACK", RolloutReason.UNSCHEDULABLE]);
  });
  test("doesn't fail the rollout while an old pod is stopping", () => {
    const spec = { updateStrategy: { rollingUpdate: { maxSurge: "100%", maxUnavailable: "100%" } } };
    const play = changing({}, spec);
    play.unschedulable.set("uid-p2", waits);
    play.nowMs += 20_000;
    assert.deepEqual(play.settle(), []);
    play.runAll();
  });
});
