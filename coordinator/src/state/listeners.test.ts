import assert from "node:assert/strict";
import { test } from "node:test";
import { Listeners } from "./listeners.ts";

test("an error of one listener doesn't affect the others", () => {
  const errors: unknown[] = [];
  const listeners = new Listeners((error) => errors.push(error));
  const called: string[] = [];
  const poison = new Error("poison");
  listeners.add(() => called.push("first"));
  listeners.add(() => {
    throw poison;
  });
  const stop = listeners.add(() => called.push("last"));
  listeners.call([]);
  assert.deepEqual(called, ["first", "last"]);
  assert.deepEqual(errors, [poison]);
  stop();
  listeners.call([]);
  assert.deepEqual(called, ["first", "last", "first"]);
});

test("throws the error after all listeners were called, if there is no error handler", () => {
  const listeners = new Listeners();
  const called: string[] = [];
  listeners.add(() => {
    throw new Error("poison");
  });
  listeners.add(() => called.push("last"));
  assert.throws(() => listeners.call([]), /poison/);
  assert.deepEqual(called, ["last"]);
});
