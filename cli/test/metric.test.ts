import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { PushedMetric } from "@forage/proto/forage/operator/v1/operator";
import { ago } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });
const rps = PushedMetric.fromPartial({
  namespace: "default",
  name: "rps",
  workload: "web",
  value: 12.5,
  ttlSeconds: 90,
  pushedAt: ago(192_600),
  expiresAt: ago(-192_660),
});

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {
    putMetric: () => ({ metric: rps }),
    listMetrics: () => ({ metrics: [rps] }),
    deleteMetric: () => ({}),
  };
});

test("pushes a value with its owner and lifetime", async () => {
  const { stdout, exitCode } = await forage("metric set rps 12.5 --workload web --for 1m30s");
  assert.equal(exitCode, 0);
  assert.match(stdout, /^rps +web +12\.5 +2d5h +2d5h$/m);
  await forage("metric set rps 0");
  assert.deepEqual(
    fake.requests("putMetric").map((request) => (request as { metric: PushedMetric }).metric),
    [
      PushedMetric.fromPartial({
        namespace: "default",
        name: "rps",
        workload: "web",
        value: 12.5,
        ttlSeconds: 90,
      }),
      PushedMetric.fromPartial({ namespace: "default", name: "rps" }),
    ],
  );
});

for (const line of [
  "metric set rps many",
  "metric set rps",
  "metric set rps 1 --for soon",
  "metric set rps NaN",
]) {
  test(`refuses ${line} before any call`, async () => {
    assert.equal((await forage(line)).exitCode, 1);
    assert.deepEqual(fake.calls, []);
  });
}

test("lists metrics, and deletes one", async () => {
  assert.match((await forage("metric ls rps")).stdout, /NAME +OF +VALUE/);
  assert.match((await forage("metric delete rps --pod web-1")).stdout, /metric\/rps deleted/);
  assert.deepEqual(fake.requests("listMetrics"), [{ namespace: "default", name: "rps" }]);
  assert.deepEqual(fake.requests("deleteMetric"), [
    { namespace: "default", name: "rps", workload: "", pod: "web-1" },
  ]);
});

test("prints one pushed value as an object, and the result of a search as a list", async () => {
  const json = async (line: string): Promise<unknown> => JSON.parse((await forage(line)).stdout);
  const value = PushedMetric.toJSON(rps);
  assert.deepEqual(await json("metric set rps 12.5 -o json"), value);
  assert.deepEqual(await json("metric ls rps -o json"), [value]);
});
