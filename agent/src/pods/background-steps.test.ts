import assert from "node:assert/strict";
import { test } from "node:test";
import { BackgroundSteps } from "./background-steps.ts";
import type { BackgroundStep } from "./step.ts";

const HOOK: BackgroundStep = { kind: "postStart", container: "main", id: "c1" };
const STOP: BackgroundStep = { kind: "stopContainer", container: "main", id: "c1", graceMs: 1 };

test("a background step runs until it ends, and its result is reported", async () => {
  const backgroundSteps = new BackgroundSteps();
  const work = Promise.withResolvers<object>();
  const told: unknown[] = [];
  backgroundSteps.begin(
    HOOK,
    () => work.promise,
    async (effect, error) => void told.push([effect, error, backgroundSteps.underWay.size]),
  );
  assert.deepEqual([...backgroundSteps.underWay], ["postStart/c1"]);
  work.resolve({ looked: true });
  await backgroundSteps.settle();
  assert.deepEqual(told, [[{ looked: true }, undefined, 0]]);
});

test("a failure is reported, and the step may be tried again", async () => {
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

test("a step that succeeds and is still requested is a failure, because it would repeat for ever", async () => {
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

test("the hook of a container that is gone is let go, its stop is not", async () => {
  const backgroundSteps = new BackgroundSteps();
  const told: string[] = [];
  const signals: AbortSignal[] = [];
  const work = (signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<object>((resolve) => signal.addEventListener("abort", () => resolve({})));
  };
  backgroundSteps.begin(HOOK, work, async () => void told.push("hook"));
  const stop = Promise.withResolvers<object>();
  backgroundSteps.begin(
    STOP,
    () => stop.promise,
    async () => void told.push("stop"),
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
  assert.deepEqual(told, ["stop"]);
});
