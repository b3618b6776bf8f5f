import assert from "node:assert/strict";
import { test } from "node:test";
import { Errands } from "./errands.ts";
import type { Errand } from "./step.ts";

const HOOK: Errand = { kind: "postStart", container: "main", id: "c1" };
const STOP: Errand = { kind: "stopContainer", container: "main", id: "c1", graceMs: 1 };

test("an errand is under way until it has ended, and what came of it is told", async () => {
  const errands = new Errands();
  const work = Promise.withResolvers<object>();
  const told: unknown[] = [];
  errands.begin(
    HOOK,
    () => work.promise,
    async (effect, error) => void told.push([effect, error, errands.underWay.size]),
  );
  assert.deepEqual([...errands.underWay], ["postStart/c1"]);
  work.resolve({ looked: true });
  await errands.settle();
  assert.deepEqual(told, [[{ looked: true }, undefined, 0]]);
});

test("a failure is told, and the same may be tried again", async () => {
  const errands = new Errands();
  const errors: unknown[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    errands.begin(
      STOP,
      () => Promise.reject(new Error("no")),
      async (_, error) => void errors.push(String(error)),
    );
    await errands.settle();
  }
  assert.deepEqual(errors, ["Error: no", "Error: no"]);
});

test("what went well and is wanted again all the same is a failure: it would go on for ever", async () => {
  const errands = new Errands();
  const errors: unknown[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    errands.begin(
      HOOK,
      async () => ({}),
      async (_, error) => void errors.push(error && String(error)),
    );
    await errands.settle();
  }
  assert.deepEqual(errors, [undefined, "Error: postStart had no effect"]);
});

test("the hook of a container that is gone is let go, its stop is not", async () => {
  const errands = new Errands();
  const told: string[] = [];
  const signals: AbortSignal[] = [];
  const work = (signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<object>((resolve) => signal.addEventListener("abort", () => resolve({})));
  };
  errands.begin(HOOK, work, async () => void told.push("hook"));
  const stop = Promise.withResolvers<object>();
  errands.begin(
    STOP,
    () => stop.promise,
    async () => void told.push("stop"),
  );
  await Promise.resolve();
  errands.keepOnly(new Set());
  assert.deepEqual([...errands.underWay], ["stopContainer/c1"]);
  assert.deepEqual(
    signals.map((it) => it.aborted),
    [true],
  );
  stop.resolve({});
  await errands.settle();
  assert.deepEqual(told, ["stop"]);
});
