import assert from "node:assert/strict";
import { test } from "node:test";
import { BackgroundSteps } from "./background-steps.ts";
import type { BackgroundStep } from "./step.ts";

const HOOK: BackgroundStep = { type: "postStart", container: "main", id: "c1" };
const STOP: BackgroundStep = { type: "stopContainer", container: "main", id: "c1", graceMs: 1 };

test("runs a background step to its end and reports its result", async () => {
  const backgroundSteps = new BackgroundSteps();
  const work = Promise.withResolvers<object>();
  const ended: unknown[] = [];
  backgroundSteps.begin(
    HOOK,
    () => work.promise,
    async (effect, error) => void ended.push([effect, error, backgroundSteps.underWay.size]),
  );
  assert.deepEqual([...backgroundSteps.underWay], ["postStart/c1"]);
  work.resolve({ looked: true });
  await backgroundSteps.settle();
  assert.deepEqual(ended, [[{ looked: true }, undefined, 0]]);
});

test("reports a failed step, which may then be retried", async () => {
  const backgroundSteps = new BackgroundSteps();
  const errors: unknown[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    backgroundSteps.begin(
      STOP,
      () => Promise.reject(new Error("no")),
      async (_, error) => void errors.push(String(error)),
    );
    await backgroundSteps.settle();
  }
  assert.deepEqual(errors, ["Error: no", "Error: no"]);
});

test("fails a step that is requested again after it succeeded, because it would repeat forever", async () => {
  const backgroundSteps = new BackgroundSteps();
  const errors: unknown[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    backgroundSteps.begin(
      HOOK,
      async () => ({}),
      async (_, error) => void errors.push(error && String(error)),
    );
    await backgroundSteps.settle();
  }
  assert.deepEqual(errors, [undefined, "Error: postStart had no effect"]);
});

test("cancels the hook of a container that no longer exists, but not its stop", async () => {
  const backgroundSteps = new BackgroundSteps();
  const ended: string[] = [];
  const signals: AbortSignal[] = [];
  const work = (signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<object>((resolve) => signal.addEventListener("abort", () => resolve({})));
  };
  backgroundSteps.begin(HOOK, work, async () => void ended.push("hook"));
  const stop = Promise.withResolvers<object>();
  backgroundSteps.begin(
    STOP,
    () => stop.promise,
    async () => void ended.push("stop"),
  );
  await Promise.resolve();
  backgroundSteps.keepOnly(new Set());
  assert.deepEqual([...backgroundSteps.underWay], ["stopContainer/c1"]);
  assert.deepEqual(
    signals.map((it) => it.aborted),
    [true],
  );
  stop.resolve({});
  await backgroundSteps.settle();
  assert.deepEqual(ended, ["stop"]);
});
