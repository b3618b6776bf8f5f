import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { randomOf } from "@forage/common/random";
import type { TargetType } from "../../model/autoscaling.ts";
import type { MetricReading, PodReading } from "./reading.ts";
import { replicasFor, TOLERANCE } from "./replicas-for.ts";

const pod = (fields: Partial<PodReading> = {}): PodReading => {
  return { name: "web-1", ready: true, starting: false, value: undefined, request: 1, ...fields };
};
/** Returns pods with a request of one core that use these shares of it. Null means unknown. */
const using = (...values: readonly (number | null)[]): PodReading[] =>
  values.map((value, index) => pod({ name: `web-${index}`, value: value ?? undefined }));
const starting = (...values: readonly number[]): PodReading[] =>
  values.map((value) => pod({ value, starting: true, ready: false }));
const of = (
  type: TargetType,
  target: number,
  pods: readonly PodReading[],
  total?: number,
): MetricReading => ({ target: { name: "cpu", type, target, text: `${target}` }, total, pods });

type Case = readonly [what: string, current: number, reading: MetricReading, expected: number | undefined];

const utilization: readonly Case[] = [
  ["twice the target doubles", 1, of("Utilization", 50, using(1)), 2],
  ["half of it halves", 2, of("Utilization", 100, using(0.5, 0.5)), 1],
  ["the mean decides", 3, of("Utilization", 30, using(0.3, 0.5, 0.7)), 5],
  ["and is rounded up", 5, of("Utilization", 50, using(0.1, 0.3, 0.5, 0.25, 0.25)), 3],
  ["near enough stays", 3, of("Utilization", 100, using(1.01, 1.03, 1.02)), 3],
  ["ten per cent are near enough", 10, of("Utilization", 50, using(...Array(10).fill(0.55))), 10],
  ["a little more is not", 10, of("Utilization", 50, using(...Array(10).fill(0.551))), 12],
  ["nor is a little less", 10, of("Utilization", 50, using(...Array(10).fill(0.449))), 9],
  ["fractions don't add a pod", 10, of("Utilization", 10, using(...Array(10).fill(0.12))), 12],
  ["starting pods count as idle", 3, of("Utilization", 30, [...starting(0.3), ...using(0.5, 0.7)]), 4],
  ["and can stop the growth", 3, of("Utilization", 30, [...starting(0.5, 0.7), ...using(0.4)]), 3],
  ["one that starts is growth enough", 2, of("Utilization", 50, [...using(1.05), ...starting(0.1)]), 2],
  ["but not the shrinking", 5, of("Utilization", 50, [...using(0.1, 0.3, 0.5), ...starting(0.2, 0.2)]), 2],
  ["missing ones count as full", 4, of("Utilization", 100, using(0.4, 0.095, null, null)), 3],
  ["and can stop the shrinking", 2, of("Utilization", 50, using(0.45, null)), 2],
  ["missing ones count as idle", 2, of("Utilization", 100, using(1.9, null)), 2],
  ["but leave some growth", 3, of("Utilization", 50, [...using(2, null), ...starting(0.1)]), 4],
  ["more than full where that is the target", 2, of("Utilization", 200, using(1, null)), 2],
  [
    "missing and starting, shrinking",
    4,
    of("Utilization", 50, [...starting(0.1), ...using(0.1, 0.1, null)]),
    3,
  ],
  ["nothing known", 2, of("Utilization", 50, using(null, null)), undefined],
  ["only starting pods", 2, of("Utilization", 50, starting(1, 1)), undefined],
  ["no pods", 2, of("Utilization", 50, []), undefined],
  [
    "requests weigh",
    2,
    of("Utilization", 50, [pod({ value: 1, request: 1 }), pod({ value: 0.5, request: 2 })]),
    2,
  ],
  [
    "pods without requests don't count",
    2,
    of("Utilization", 50, [...using(1), pod({ value: 9, request: 0 })]),
    2,
  ],
  ["more pods than replicas don't shrink by it", 2, of("Utilization", 50, using(0.6, 0.6, 0.6)), 4],
  ["and don't grow by it", 2, of("Utilization", 50, using(0.4, 0.4, 0.4)), 2],
];

const average: readonly Case[] = [
  ["a mean of pods", 5, of("AverageValue", 20, using(12, 12, 12, 12, 12)), 3],
  ["a mean of pods that grows", 3, of("AverageValue", 15, using(20, 10, 30)), 4],
  ["a missing one counts as the target", 2, of("AverageValue", 10, using(4, null)), 2],
  ["a missing one counts as idle", 2, of("AverageValue", 10, using(30, null)), 3],
  ["a total is shared out", 5, of("AverageValue", 2.867, using(1, 1, 1, 1, 1), 8.6), 3],
  ["a total near enough", 3, of("AverageValue", 10, using(1, 1, 1), 32), 3],
  ["a total without any pod", 1, of("AverageValue", 10, [], 100), 10],
  ["a total of nothing", 3, of("AverageValue", 10, using(1, 1, 1), 0), 0],
];

const value: readonly Case[] = [
  ["a queue", 5, of("Value", 14.334, using(1, 1, 1, 1, 1), 8.6), 3],
  ["a queue that grows", 3, of("Value", 15, using(1, 1, 1), 20), 4],
  ["as many as are ready", 3, of("Value", 15, [...using(1, 1), ...starting(1)], 30), 4],
  ["never fewer for more", 10, of("Value", 10, [...using(1), ...starting(1, 1)], 20), 10],
  ["none ready", 3, of("Value", 10, starting(1, 1, 1), 30), undefined],
  ["near enough, none ready", 3, of("Value", 10, starting(1, 1, 1), 10), 3],
  ["a metric of each pod: the largest", 2, of("Value", 10, using(20, 18)), 4],
  ["a metric of some pods", 2, of("Value", 10, using(20, null)), 4],
  ["a metric that no pod reports", 2, of("Value", 10, using(null, null)), undefined],
  ["a share of requests can't be a total", 2, of("Utilization", 10, using(1, 1), 30), undefined],
];

for (const [name, cases] of Object.entries({ utilization, average, value })) {
  describe(name, () => {
    for (const [what, current, reading, expected] of cases) {
      test(`${what}: ${current} → ${expected ?? "not known"}`, () => {
        const { replicas, message } = replicasFor(reading, current);
        assert.equal(replicas, expected);
        if (expected === undefined) assert.notEqual(message, "");
      });
    }
  });
}

test("names some of the pods without a value", () => {
  const { message } = replicasFor(of("Utilization", 50, using(1, null, null, null, null, null)), 6);
  assert.equal(message, "unknown for web-1, web-2, web-3 and 2 more");
  const { message: three } = replicasFor(of("Utilization", 50, using(1, null, null, null)), 4);
  assert.equal(three, "unknown for web-1, web-2, web-3");
  const refused = { ...pod({ name: "a" }), problem: "refused" };
  assert.equal(replicasFor(of("AverageValue", 5, [refused]), 1).message, "refused");
  const { message: one } = replicasFor(of("AverageValue", 5, [...using(5), refused]), 2);
  assert.equal(one, "unknown for a (refused)");
});

test("the message contains the compared value: a percentage, a mean or a total", () => {
  const values = [
    of("Utilization", 50, using(0.5, 0.7)),
    of("AverageValue", 50, using(10, 30)),
    of("AverageValue", 50, using(1, 1), 60),
    of("Value", 50, using(1, 1), 60),
  ].map((reading) => replicasFor(reading, 2).value ?? Number.NaN);
  assert.deepEqual(
    values.map((it) => Number(it.toFixed(6))),
    [60, 20, 30, 60],
  );
});

test("a higher use never results in fewer replicas, with pods that start or lack values", () => {
  for (let seed = 0; seed < 2_000; seed++) {
    const random = randomOf(seed);
    const current = 1 + random.below(12);
    const type = random.pick(["Utilization", "AverageValue", "Value"] as const);
    const target = 1 + random.below(150);
    const scale = type === "Utilization" ? 0.01 : 1;
    const total = type !== "Utilization" && random.chance(0.3) ? random.below(300) : undefined;
    const pods = Array.from({ length: current + random.below(3) }, () =>
      pod({
        value: random.chance(0.2) ? undefined : random.below(300) * scale,
        starting: random.chance(0.2),
        ready: random.chance(0.8),
        request: 1 + random.below(3),
      }),
    );
    const raised = pods.map((it) => ({ ...it, value: it.value && it.value * (1 + random.below(3)) }));
    const before = replicasFor(of(type, target, pods, total), current).replicas;
    const more = total === undefined ? undefined : total * (1 + random.below(3));
    const after = replicasFor(of(type, target, raised, more), current).replicas;
    assert.ok((before ?? 0) <= (after ?? before ?? 0), `seed ${seed}: ${before} → ${after}`);
  }
});

test("within the tolerance the number of replicas stays the same", () => {
  for (let seed = 0; seed < 500; seed++) {
    const random = randomOf(seed);
    const current = 1 + random.below(50);
    const share = 0.5 * (1 + (random.below(2001) / 1000 - 1) * TOLERANCE);
    const reading = of("Utilization", 50, using(...Array<number>(current).fill(share)));
    assert.equal(replicasFor(reading, current).replicas, current, `seed ${seed}: ${share}`);
  }
});
