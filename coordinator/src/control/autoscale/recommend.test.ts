import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { randomOf } from "@forage/common/random";
import type { Autoscaling } from "../../model/autoscaling.ts";
import { newHistory, type ScaleHistory, withAdded } from "./history.ts";
import type { MetricReading } from "./reading.ts";
import { type Recommendation, recommend } from "./recommend.ts";

const policy = (fields: Partial<Autoscaling> = {}): Autoscaling => {
  return { minReplicas: 1, maxReplicas: 100, metrics: [], stabilizationMs: 300_000, ...fields };
};
/** Returns a metric that requires this number of replicas. Undefined: the metric is unknown. */
const needing = (replicas: number | undefined, name = "rps"): MetricReading => ({
  target: { name, type: "AverageValue", target: 10, text: "10" },
  total: replicas === undefined ? undefined : replicas * 10,
  pods: [],
});

/** Runs one evaluation after another, 15 s apart by default. Each evaluation uses the result of the one before. */
class Evaluations {
  nowMs = 0;
  current: number;
  history: ScaleHistory;
  readonly policy: Autoscaling;

  constructor(current: number, limits: Partial<Autoscaling> = {}) {
    this.current = current;
    this.policy = policy(limits);
    this.history = newHistory(current, 0);
  }

  evaluate(readings: readonly MetricReading[], afterMs = 15_000): Recommendation {
    this.nowMs += afterMs;
    const { current, nowMs, history } = this;
    const result = recommend({ current, policy: this.policy, readings, history, nowMs });
    this.history = withAdded(result.history, result.replicas - current, nowMs);
    this.current = result.replicas;
    return result;
  }

  /** Returns the number of replicas after each of these evaluations. */
  follow(needed: readonly number[], afterMs = 15_000): number[] {
    return needed.map((replicas) => this.evaluate([needing(replicas)], afterMs).replicas);
  }
}

const conditionOf = ({ conditions }: Recommendation, type: string) => {
  const found = conditions.find((it) => it.type === type);
  return [found?.status, found?.reason];
};

describe("with several metrics", () => {
  test("uses the one that requires the most replicas", () => {
    const { replicas, reason } = new Evaluations(2).evaluate([
      needing(3, "a"),
      needing(4, "b"),
      needing(1, "c"),
    ]);
    assert.equal(replicas, 4);
    assert.equal(reason, "2 → 4: b is at 20 a pod, target 10");
  });

  test("doesn't scale down while one of them is unknown", () => {
    const evaluations = new Evaluations(4, { stabilizationMs: 0 });
    const result = evaluations.evaluate([needing(1, "a"), needing(undefined, "b")]);
    assert.equal(result.replicas, 4);
    assert.match(result.reason, /stays at 4: not scaled down while a metric is unknown \(b: /);
    assert.deepEqual(conditionOf(result, "ScalingActive"), [true, "MetricsMissing"]);
  });

  test("scales up although one of them is unknown", () => {
    assert.equal(new Evaluations(4).evaluate([needing(6, "a"), needing(undefined, "b")]).replicas, 6);
  });

  test("changes nothing while all of them are unknown, and gives the reason", () => {
    const result = new Evaluations(4).evaluate([needing(undefined, "a")]);
    assert.equal(result.replicas, 4);
    assert.equal(result.reason, "stays at 4: all metrics are unknown (a: there is no pod to measure)");
    assert.deepEqual(conditionOf(result, "ScalingActive"), [false, "MetricsMissing"]);
  });
});

describe("limits", () => {
  test("never exceeds max_replicas", () => {
    const result = new Evaluations(3, { maxReplicas: 5 }).evaluate([needing(7)]);
    assert.equal(result.replicas, 5);
    assert.match(result.reason, /3 → 5: .*; 7 replicas are needed, but max_replicas is 5$/);
    assert.deepEqual(conditionOf(result, "ScalingLimited"), [true, "TooManyReplicas"]);
  });

  test("never goes below min_replicas", () => {
    const result = new Evaluations(3, { minReplicas: 2, stabilizationMs: 0 }).evaluate([needing(0)]);
    assert.equal(result.replicas, 2);
    assert.deepEqual(conditionOf(result, "ScalingLimited"), [true, "TooFewReplicas"]);
  });

  test("at most doubles the replicas or adds four within 15 s", () => {
    assert.deepEqual(new Evaluations(1).follow([90, 90, 90, 90, 90]), [5, 10, 20, 40, 80]);
    assert.deepEqual(new Evaluations(10).follow([90]), [20]);
    const result = new Evaluations(1).evaluate([needing(90)]);
    assert.deepEqual(conditionOf(result, "ScalingLimited"), [true, "ScaleUpLimit"]);
  });

  test("keeps replicas that were added in another way within the growth period", () => {
    const evaluations = new Evaluations(10, { maxReplicas: 500 });
    evaluations.history = withAdded(evaluations.history, 100, 0);
    evaluations.current = 110;
    assert.equal(evaluations.evaluate([needing(150)], 1_000).replicas, 110);
  });

  test("limits growth independently of how often it evaluates", () => {
    assert.deepEqual(new Evaluations(10).follow([90, 90, 90, 90], 5_000), [20, 20, 20, 40]);
    assert.deepEqual(new Evaluations(1).follow([3, 4, 9, 9, 9], 5_000), [3, 4, 5, 7, 8]);
  });
});

describe("scale_down_stabilization", () => {
  test("scales down to the highest recommendation of the window", () => {
    const evaluations = new Evaluations(8, { stabilizationMs: 60_000 });
    assert.deepEqual(evaluations.follow([2, 5, 2, 2, 2, 2, 2]), [8, 8, 8, 5, 5, 2, 2]);
  });

  test("is the reason of a recommendation that it changes", () => {
    const result = new Evaluations(8).evaluate([needing(2)]);
    assert.equal(result.replicas, 8);
    assert.deepEqual(conditionOf(result, "AbleToScale"), [true, "ScaleDownStabilized"]);
    assert.match(result.reason, /; 2 replicas are enough now, but within the last 300 s 8 were needed$/);
  });

  test("scales down at once if it is 0", () => {
    assert.deepEqual(new Evaluations(8, { stabilizationMs: 0 }).follow([2, 5, 1]), [2, 5, 1]);
  });

  test("scales up at once, and begins a new window", () => {
    const evaluations = new Evaluations(4, { stabilizationMs: 30_000 });
    assert.deepEqual(evaluations.follow([2, 6, 2, 2, 2]), [4, 6, 6, 2, 2]);
  });

  test("counts an unknown metric as a recommendation of the current replicas", () => {
    const evaluations = new Evaluations(8, { stabilizationMs: 30_000 });
    for (let index = 0; index < 10; index++) evaluations.evaluate([needing(undefined)]);
    assert.deepEqual(evaluations.follow([2, 2]), [8, 2]);
  });

  test("keeps no more recommendations than fit in its window", () => {
    const evaluations = new Evaluations(50, { stabilizationMs: 60_000 });
    for (let index = 0; index < 1_000; index++) evaluations.evaluate([needing(1 + ((index * 7) % 50))]);
    assert.ok(evaluations.history.recommended.length <= 5, `${evaluations.history.recommended.length}`);
    assert.ok(evaluations.history.added.length <= 1);
  });
});

test("stays within the limits, and doesn't oscillate with a constant metric", () => {
  for (let seed = 0; seed < 500; seed++) {
    const random = randomOf(seed);
    const minReplicas = 1 + random.below(5);
    const maxReplicas = minReplicas + random.below(20);
    const start = minReplicas + random.below(maxReplicas - minReplicas + 1);
    const evaluations = new Evaluations(start, {
      minReplicas,
      maxReplicas,
      stabilizationMs: random.below(4) * 30_000,
    });
    for (let step = 0; step < 30; step++) {
      const { replicas } = evaluations.evaluate([needing(random.chance(0.1) ? undefined : random.below(40))]);
      assert.ok(replicas >= minReplicas && replicas <= maxReplicas, `seed ${seed} step ${step}: ${replicas}`);
    }
    const load = random.below(400);
    const steady: MetricReading = { ...needing(1), total: load };
    const sizes = Array.from({ length: 40 }, () => evaluations.evaluate([steady]).replicas);
    const changes = sizes.slice(1).map((size, index) => Math.sign(size - (sizes[index] ?? size)));
    const directions = new Set(changes.filter((it) => it !== 0));
    assert.ok(directions.size <= 1, `seed ${seed}: ${sizes.join(" ")}`);
    assert.deepEqual(new Set(changes.slice(-10)), new Set([0]), `seed ${seed}: ${sizes.join(" ")}`);
  }
});
