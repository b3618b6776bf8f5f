import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { AttemptState } from "@forage/proto/forage/store/v1/store";
import { RolloutPlay } from "../../../test/support/rollout-play.ts";
import { isReady } from "../../endpoints/readiness.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import { rolloutView } from "./rollout-view.ts";
import { updateLimits } from "./update-limits.ts";

const SEEDS = 200;
const ROUNDS = 60;
/** Enough rounds without faults for six progress deadlines, of a revision and of its rollback. */
const CALM_ROUNDS = 150;
const CALM_STEP_MS = 60_000;

test("every rollout keeps its limits and ends under random applies, pauses, losses and failures", () => {
  const ends = new Map<AttemptState, number>();
  for (let seed = 0; seed < SEEDS; seed++) {
    const story = new Story(randomOf(seed));
    for (let round = 0; round < ROUNDS; round++) {
      story.happen();
      story.evaluate(`seed ${seed} round ${round}`);
    }
    for (let round = 0; round < CALM_ROUNDS; round++) {
      story.calmDown();
      story.evaluate(`seed ${seed} calm round ${round}`);
    }
    const { attempt } = story.play;
    story.checkEnd(`seed ${seed}`);
    ends.set(attempt.state, (ends.get(attempt.state) ?? 0) + 1);
  }
  // Asserts that the random histories reach all of these states.
  for (const state of [AttemptState.SUCCEEDED, AttemptState.ROLLED_BACK, AttemptState.FAILED])
    assert.ok((ends.get(state) ?? 0) > SEEDS / 50, `${ends.get(state)} ended in state ${state}`);
});

class Story {
  readonly play = new RolloutPlay();
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
    this.#apply();
  }

  happen(): void {
    const { play } = this;
    const random = this.#random;
    if (random.chance(0.12)) this.#apply();
    if (random.chance(0.1) && play.status !== undefined) play.decide({ paused: !play.status.paused });
    if (random.chance(0.1)) this.#promote();
    const node = `n${random.below(3)}`;
    if (random.chance(0.1)) play.away.add(node);
    if (random.chance(0.3)) play.away.delete(node);
    if (play.pods.length > 0 && random.chance(0.05)) play.vanishes(random.pick(play.pods).record.name);
    play.nowMs += random.below(60_000);
    for (const pod of play.pods) if (random.chance(0.4)) this.#live(pod, random.chance(0.8));
  }

  /** Stops all faults except those of a revision itself. */
  calmDown(): void {
    const { play } = this;
    play.away.clear();
    if (play.status?.paused) play.decide({ paused: false });
    this.#promote();
    play.nowMs += CALM_STEP_MS;
    for (const pod of play.pods) this.#live(pod, true);
  }

  evaluate(where: string): void {
    const { play } = this;
    const view = rolloutView(play.input());
    const { workload } = play.resource;
    assert.ok(workload);
    const limits = updateLimits(workload.strategy, workload.replicas);
    const before = { pods: play.pods, serving: this.#serving() };
    const steps = play.evaluate();
    // The evaluation may have changed the effective revision.
    if (play.resource.workload?.templateHash !== workload.templateHash) return;
    const held = view !== undefined && view.hold.type !== "none";
    const surge = limits.type === "Recreate" ? 0 : limits.surge;
    if (steps.some((step) => step.startsWith("create"))) {
      const active = play.pods.filter(({ record }) => record.stoppingSince === undefined).length;
      assert.ok(
        active <= workload.replicas + surge,
        `${where}: ${active} of ${workload.replicas} + ${surge}`,
      );
      const isOld = (pod: PodEntry) => !workload.currentHashes.has(pod.record.templateHash);
      const inTheWay = before.pods.filter(
        (pod) => isOld(pod) && pod.record.node !== "" && !play.away.has(pod.record.node),
      );
      if (limits.type === "Recreate" && !held)
        assert.deepEqual(inTheWay, [], `${where}: Recreate begins before all is gone`);
    }
    if (limits.type === "Recreate") return;
    const needed = workload.replicas - limits.unavailable;
    assert.ok(
      this.#serving() >= Math.min(before.serving, needed),
      `${where}: ${this.#serving()} of ${needed} serve, ${before.serving} served before: ${steps.join(", ")}`,
    );
  }

  checkEnd(where: string): void {
    const { play } = this;
    assert.deepEqual(play.evaluate(), [], `${where}: there is nothing left to do`);
    const { state, rolledBackTo } = play.attempt;
    assert.ok(
      state !== AttemptState.PROGRESSING && state !== AttemptState.ROLLING_BACK,
      `${where}: it is over`,
    );
    if (state === AttemptState.FAILED) {
      assert.equal(rolledBackTo, 0, `${where}: good versions come up`);
      return;
    }
    const { workload } = play.resource;
    const good = play.pods.map((pod) => [
      workload?.currentHashes.has(pod.record.templateHash),
      this.#isServing(pod),
    ]);
    assert.deepEqual(
      good,
      Array(workload?.replicas).fill([true, true]),
      `${where}: pods of the effective revision run`,
    );
    const numbers = play.revisions.map(({ number }) => number);
    assert.equal(new Set(numbers).size, numbers.length);
    assert.ok(numbers.length <= 11, `${where}: ${numbers.length} revisions are kept`);
  }

  #apply(): void {
    const random = this.#random;
    const rollingUpdate = {
      maxSurge: random.pick(["0", "1", "25%", "100%"]),
      maxUnavailable: random.pick(["1", "", "50%"]),
    };
    const type = random.pick(["RollingUpdate", "RollingUpdate", "Recreate"]);
    const updateStrategy = type === "Recreate" ? { type } : { type, rollingUpdate };
    const image = random.pick(["app:v1", "app:v2", "app:v3", "app:crash", "app:stuck"]);
    const replicas = random.pick([0, 1, 2, 3, 5, 8]);
    const annotations: Record<string, string> = {};
    if (type !== "Recreate" && random.chance(0.3))
      annotations["forage.dev/canary"] = random.pick(["1", "50%"]);
    if (random.chance(0.2)) annotations["forage.dev/rollback"] = "off";
    this.play.apply(image, { scaling: { replicas }, updateStrategy }, annotations);
  }

  #promote(): void {
    const { play } = this;
    if (play.status?.attempt === undefined || rolloutView(play.input())?.hold.type !== "canary") return;
    play.decide({ attempt: { ...play.attempt, promoted: true, progressedAt: toTimestamp(play.nowMs) } });
  }

  /** Moves the pod to its next phase, or to an earlier one. */
  #live({ record }: PodEntry, well: boolean): void {
    const { play } = this;
    const image = record.template?.container?.image;
    if (record.stoppingSince !== undefined) {
      if (!play.away.has(record.node)) play.vanishes(record.name);
      return;
    }
    const node = record.node === "" ? `n${this.#random.below(3)}` : record.node;
    if (image === "app:crash" && record.node !== "") play.crashes(record.name, node);
    else
      play.says(
        record.name,
        { ready: record.node !== "" && well && image !== "app:stuck" && image !== "app:crash" },
        node,
      );
  }

  #serving(): number {
    return this.play.pods.filter((pod) => this.#isServing(pod)).length;
  }

  #isServing(pod: PodEntry): boolean {
    return isReady(pod, (node) => !this.play.away.has(node));
  }
}
