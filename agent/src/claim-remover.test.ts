import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ClaimRemover } from "./claim-remover.ts";
import { VolumeError } from "./volumes/volumes.ts";

test("removes claims once no pod uses them, and reports each once", async () => {
  const clock = new VirtualClock();
  const inUse = new Map([["shop/db", 3]]);
  const removed: string[] = [];
  const failures: string[] = [];
  const remover = new ClaimRemover({
    clock,
    volumes: {
      removeClaim: async (namespace, name) => {
        const left = inUse.get(`${namespace}/${name}`) ?? 0;
        inUse.set(`${namespace}/${name}`, left - 1);
        if (left > 0) throw new VolumeError("IN_USE", "a pod has it");
      },
    },
    removed: ({ name }) => removed.push(name),
    failed: ({ name }) => failures.push(name),
  });
  const stopping = new AbortController();
  const running = remover.run(stopping.signal);
  remover.remove([
    { namespace: "shop", name: "db" },
    { namespace: "shop", name: "cache" },
    { namespace: "shop", name: "cache" },
  ]);
  await clock.run(60_000);
  assert.deepEqual(removed, ["cache", "db"]);
  assert.deepEqual(failures, ["db", "db", "db"]);
  remover.remove([{ namespace: "shop", name: "late" }]);
  await clock.run(1_000);
  assert.deepEqual(removed, ["cache", "db", "late"]);
  stopping.abort();
  await running;
});

test("a claim that can't be removed does not delay others", async (t) => {
  const clock = new VirtualClock();
  const removed: string[] = [];
  const tried: string[] = [];
  const remover = new ClaimRemover({
    clock,
    volumes: {
      removeClaim: async (_, name) => {
        tried.push(name);
        if (name === "stuck") throw new VolumeError("IN_USE", "a pod has it");
      },
    },
    removed: ({ name }) => removed.push(name),
    failed: () => undefined,
  });
  const stopping = new AbortController();
  const running = remover.run(stopping.signal);
  t.after(async () => {
    stopping.abort();
    await running;
  });
  remover.remove([{ namespace: "shop", name: "stuck" }]);
  await clock.run(300_000);
  const tries = tried.length;

  remover.remove([{ namespace: "shop", name: "stuck" }]);
  await clock.run(0);
  assert.equal(tried.length, tries, "asking again changes nothing");
  remover.remove([{ namespace: "shop", name: "late" }]);
  await clock.run(0);

  assert.deepEqual(removed, ["late"]);
});
