import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { Remains } from "./remains.ts";

/** A disk with remains of workspaces. Those in `stuck` can't be deleted. */
function aDisk(t: { after(hook: () => Promise<void>): void }, ...there: readonly string[]) {
  const clock = new VirtualClock();
  const [left, stuck, removed, warned] = [new Set(there), new Set<string>(), [] as string[], [] as object[]];
  const disk = { clock, left, stuck, removed, warned, atOnce: 0, isReadable: true };
  const remains = new Remains({
    clock,
    list: async () => {
      if (!disk.isReadable) throw new Error("the disk can't be read");
      return [...left];
    },
    remove: async (id) => {
      disk.atOnce += 1;
      assert.equal(disk.atOnce, 1, "one at a time");
      await new Promise(setImmediate);
      disk.atOnce -= 1;
      if (stuck.has(id)) throw new Error(`${id} is stuck`);
      left.delete(id);
    },
    removed: (id) => void removed.push(id),
    log: { info: () => undefined, warn: (fields) => void warned.push(fields) },
  });
  const closing = new AbortController();
  const running = remains.run(closing.signal);
  t.after(async () => {
    closing.abort();
    await running;
  });
  return { ...disk, disk, remains };
}

/** Waits for all work that does not depend on time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
}

test("deletes remains of an earlier process and new ones, one workspace at a time", async (t) => {
  const { remains, left, removed } = aDisk(t, "a", "b");
  await settle();
  assert.deepEqual(removed, ["a", "b"]);
  left.add("c");
  remains.wake();
  await settle();
  assert.deepEqual(removed, ["a", "b", "c"]);
});

test("repeats a failed deletion without blocking others", async (t) => {
  const { clock, stuck, removed, warned } = aDisk(t, "a", "b");
  stuck.add("a");
  await settle();
  assert.deepEqual(removed, ["b"]);
  assert.deepEqual(warned, [
    { event: "workspace-remains-not-deleted", workspace: "a", reason: "a is stuck" },
  ]);
  stuck.clear();
  await settle();
  assert.deepEqual(removed, ["b"]);
  clock.advance(1_000);
  await settle();
  assert.deepEqual(removed, ["b", "a"]);
});

test("continues once the directory can be read again", async (t) => {
  const { clock, disk, remains, removed } = aDisk(t);
  await settle();
  disk.isReadable = false;
  disk.left.add("a");
  remains.wake();
  await settle();
  assert.deepEqual(removed, []);
  disk.isReadable = true;
  clock.advance(1_000);
  await settle();
  assert.deepEqual(removed, ["a"]);
});
