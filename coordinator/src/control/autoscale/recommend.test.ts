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
/** A metric that calls for so many replicas, each alike; undefined: it isn't known. */
const wanting = (replicas: number | undefined, name = "rps"): MetricReading => ({
  target: { name, type: "AverageValue", target: 10, text: "10" },
  total: replicas === undefined ? undefined : replicas * 10,
  pods: [],
});

/** Evaluates one time after the other, 15 s apart; each uses the decision before it. */
class Looks {
  nowMs = 0;
  current: number;
  history: ScaleHistory;
  readonly policy: Autoscaling;

  constructor(current: number, limits: Partial<Autoscaling> = {}) {
    this.current = current;
    this.policy = policy(limits);
    this.history = newHistory(current, 0);
  }

  look(readings: readonly MetricReading[], afterMs = 15_000): Recommendation {
    this.nowMs += afterMs;
    const { current, nowMs, history } = this;
    const result = recommend({ current, policy: this.policy, readings, history, nowMs });
    this.history = withAdded(result.history, result.replicas - current, nowMs);
    this.current = result.replicas;
    return result;
  }

  /** Returns the number of replicas after each of these evaluations. */
  follow(wanted: readonly number[], afterMs = 15_000): number[] {
    return wanted.map((replicas) => this.look([wanting(replicas)], afterMs).replicas);
  }
}

const conditionOf = ({ conditions }: Recommendation, type: string) => {
  const found = conditions.find((it) => it.type === type);
  return [found?.status, found?.reason];
};

describe("which metric decides", () => {
  test("the one that calls for the most", () => {
    const { replicas, reason } = new Looks(2).look([wanting(3, "a"), wanting(4, "b"), wanting(1, "c")]);
    assert.equal(replicas, 4);
    assert.equal(reason, "2 → 4: b is at 20 a pod, target 10");
  });

  test("one that isn't known stops the shrinking", () => {
    const looks = new Looks(4, { stabilizationMs: 0 });
    const result = looks.look([wanting(1, "a"), wanting(undefined, "b")]);
    assert.equal(result.replicas, 4);
    assert.match(result.reason, /stays at 4: nothing is removed while a metric isn't known \(b: /);
    assert.deepEqual(conditionOf(result, "ScalingActive"), [true, "MetricsMissing"]);
  });

  test("but not the growth", () => {
    assert.equal(new Looks(4).look([wanting(6, "a"), wanting(undefined, "b")]).replicas, 6);
  });

  test("without any metric nothing changes, and the reason says so", () => {
    const result = new Looks(4).look([wanting(undefined, "a")]);
    assert.equal(result.replicas, 4);
    assert.equal(result.reason, "stays at 4: no metric is known (a: there is no pod to measure)");
    assert.deepEqual(conditionOf(result, "ScalingActive"), [false, "MetricsMissing"]);
  });
});

describe("limits", () => {
  test("max_replicas", () => {
    const result = new Looks(3, { maxReplicas: 5 }).look([wanting(7)]);
    assert.equal(result.replicas, 5);
    assert.match(result.reason, /3 → 5: .*; 7 replicas are needed, but max_replicas is 5$/);
    assert.deepEqual(conditionOf(result, "ScalingLimited"), [true, "TooManyReplicas"]);
  });

  test("min_replicas", () => {
    const result = new Looks(3, { minReplicas: 2, stabilizationMs: 0 }).look([wanting(0)]);
    assert.equal(result.replicas, 2);
    assert.deepEqual(conditionOf(result, "ScalingLimited"), [true, "TooFewReplicas"]);
  });

  test("within 15 s replicas double, or grow by four", () => {
    assert.deepEqual(new Looks(1).follow([90, 90, 90, 90, 90]), [5, 10, 20, 40, 80]);
    assert.deepEqual(new Looks(10).follow([90]), [20]);
    const result = new Looks(1).look([wanting(90)]);
    assert.deepEqual(conditionOf(result, "ScalingLimited"), [true, "ScaleUpLimit"]);
  });

  test("replicas that were added in another way within the policy period stay", () => {
    const looks = new Looks(10, { maxReplicas: 500 });
    looks.history = withAdded(looks.history, 100, 0);
    looks.current = 110;
    assert.equal(looks.look([wanting(150)], 1_000).replicas, 110);
  });

  test("however often one looks", () => {
    assert.deepEqual(new Looks(10).follow([90, 90, 90, 90], 5_000), [20, 20, 20, 40]);
    assert.deepEqual(new Looks(1).follow([3, 4, 9, 9, 9], 5_000), [3, 4, 5, 7, 8]);
  });
});

describe("scale_down_stabilization", () => {
  test("shrinks to the highest of the window", () => {
    const looks = new Looks(8, { stabilizationMs: 60_000 });
    assert.deepEqual(looks.follow([2, 5, 2, 2, 2, 2, 2]), [8, 8, 8, 5, 5, 2, 2]);
  });

  test("says so", () => {
    const result = new Looks(8).look([wanting(2)]);
    assert.equal(result.replicas, 8);
    assert.deepEqual(conditionOf(result, "AbleToScale"), [true, "ScaleDownStabilized"]);
    assert.match(result.reason, /; 2 replicas are enough now, but within the last 300 s 8 were needed$/);
  });

  test("0: shrinks at once", () => {
    assert.deepEqual(new Looks(8, { stabilizationMs: 0 }).follow([2, 5, 1]), [2, 5, 1]);
  });

  test("grows at once, and after that waits again", () => {
    const looks = new Looks(4, { stabilizationMs: 30_000 });
    assert.deepEqual(looks.follow([2, 6, 2, 2, 2]), [4, 6, 6, 2, 2]);
  });

  test("time in which nothing was known counts as wanting what there was", () => {
    const looks = new Looks(8, { stabilizationMs: 30_000 });
    for (let index = 0; index < 10; index++) looks.look([wanting(undefined)]);
    assert.deepEqual(looks.follow([2, 2]), [8, 2]);
  });

  test("remembers no more than the looks of its window", () => {
    const looks = new Looks(50, { stabilizationMs: 60_000 });
    for (let index = 0; index < 1_000; index++) looks.look([wanting(1 + ((index * 7) % 50))]);
    assert.ok(looks.history.wanted.length <= 5, `${looks.history.wanted.length}`);
    assert.ok(looks.history.added.length <= 1);
  });
});

test("never beyond the limits, and with a steady metric never to and fro", () => {
  for (let seed = 0; seed < 500; seed++) {
    const random = randomOf(seed);
    const minReplicas = 1 + random.below(5);
    const maxReplicas = minReplicas + random.below(20);
    const start = minReplicas + random.below(maxReplicas - minReplicas + 1);
    const looks = new Looks(start, { minReplicas, maxReplicas, stabilizationMs: random.below(4) * 30_000 });
    for (let step = 0; step < 30; step++) {
      const { replicas } = looks.look([wanting(random.chance(0.1) ? undefined : random.below(40))]);
      assert.ok(replicas >= minReplicas && replicas <= maxReplicas, `seed ${seed} step ${step}: ${replicas}`);
    }
    const load = random.below(400);
    const steady: MetricReading = { ...wanting(1), total: load };
    const sizes = Array.from({ length: 40 }, () => looks.look([steady]).replicas);
    const changes = sizes.slice(1).map((size, index) => Math.sign(size - (sizes[index] ?? size)));
    const directions = new Set(changes.filter((it) => it !== 0));
    assert.ok(directions.size <= 1, `seed ${seed}: ${sizes.join(" ")}`);
    assert.deepEqual(new Set(changes.slice(-10)), new Set([0]), `seed ${seed}: ${sizes.join(" ")}`);
  }
});
