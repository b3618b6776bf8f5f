import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyedMutex } from "./keyed-mutex.ts";

test("a task waits for earlier tasks of its key, even if they failed, but not for other keys", async () => {
  const mutex = new KeyedMutex();
  const log: string[] = [];
  const opened: (() => void)[] = [];
  const gated = (name: string, key: string, fails = false) =>
    mutex.run(key, async () => {
      log.push(`${name} begins`);
      await new Promise<void>((resolve) => opened.push(resolve));
      log.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    });
  const first = gated("first", "a", true);
  const second = gated("second", "a");
  const other = gated("other", "b");
  const openNext = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    opened.shift()?.();
  };
  await openNext();
  await assert.rejects(first, /first/);
  await openNext();
  assert.equal(await other, "other");
  await openNext();
  assert.equal(await second, "second");
  await mutex.idle();
  assert.deepEqual(log, [
    "first begins",
    "other begins",
    "first ends",
    "second begins",
    "other ends",
    "second ends",
  ]);
});

test("a call during other work waits for all calls before it", async () => {
  const mutex = new KeyedMutex();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = mutex.run("a", () => gates[0]?.promise ?? Promise.resolve());
  const second = mutex.run("a", () => gates[1]?.promise ?? Promise.resolve());
  gates[0]?.resolve();
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  let begun = false;
  const third = mutex.run("a", async () => {
    begun = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(begun, false);
  gates[1]?.resolve();
  await Promise.all([second, third]);
  assert.equal(begun, true);
});
