import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEntry } from "@forage/common/log";
import { VirtualClock } from "@forage/common/virtual-clock";
import { repairSpare } from "./repair-spare.ts";
import { SandboxPool } from "./sandbox-pool.ts";
import type { SandboxRecord } from "./sandbox-records.ts";

interface Scene {
  readonly clock: VirtualClock;
  readonly pool: SandboxPool;
  readonly made: string[];
  readonly errors: unknown[];
  failNext: boolean;
}

function aPool(size: number): Scene {
  const clock = new VirtualClock();
  const made: string[] = [];
  const errors: unknown[] = [];
  const make = async () => {
    if (scene.failNext) throw new Error("no");
    made.push(`ns-${made.length}`);
    return { namespace: `ns-${made.length - 1}`, address: "10.64.0.2", hostInterface: "veth0" };
  };
  const pool = new SandboxPool({ size, clock, make, onError: (error) => errors.push(error) });
  const scene: Scene = { clock, pool, made, errors, failNext: false };
  return scene;
}

test("fills itself after a quiet period", async () => {
  const { clock, pool, made } = aPool(3);
  pool.start([]);
  assert.equal(made.length, 0);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal(pool.spareCount, 3);
  assert.equal(clock.pending, 0, "no polling");
});

test("returns a prepared sandbox, or else creates one at once, and replenishes the pool later", async () => {
  const { clock, pool, made } = aPool(1);
  pool.start([]);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal((await pool.acquire()).namespace, "ns-0");
  assert.equal((await pool.acquire()).namespace, "ns-1");
  assert.equal(made.length, 2);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal(pool.spareCount, 1);
});

test("preparation pauses while pods start", async () => {
  const { clock, pool, made } = aPool(8);
  pool.start([]);
  clock.next(Number.POSITIVE_INFINITY);
  await Promise.resolve();
  await pool.acquire();
  await settled();
  const before = made.length;
  assert.ok(before < 8);
  await settled();
  assert.equal(made.length, before);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal(pool.spareCount, 8);
});

test("a pool that starts full is refilled after sandboxes are taken", async () => {
  const { clock, pool, made } = aPool(1);
  pool.start([{ namespace: "kept", address: "10.64.0.9", hostInterface: "veth9" }]);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal(made.length, 0, "nothing was missing");

  await pool.acquire();
  clock.next(Number.POSITIVE_INFINITY);
  await settled();

  assert.equal(pool.spareCount, 1);
});

test("reports a failure and retries later", async () => {
  const scene = aPool(2);
  scene.failNext = true;
  scene.pool.start([]);
  scene.clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal(scene.errors.length, 1);
  scene.clock.advance(9_999);
  assert.equal(scene.clock.pending, 1);
  scene.failNext = false;
  scene.clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal(scene.pool.spareCount, 2);
});

test("removes and replaces broken prepared sandboxes, except those that pods use by then", async () => {
  const { clock, pool } = aPool(4);
  pool.start([]);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  const removed: string[] = [];
  const maker = {
    intact: async (spare: readonly SandboxRecord[]) => {
      assert.deepEqual(
        spare.map(({ namespace }) => namespace),
        ["ns-0", "ns-1", "ns-2", "ns-3"],
      );
      assert.equal((await pool.acquire()).namespace, "ns-3");
      return spare.filter(({ namespace }) => namespace !== "ns-1" && namespace !== "ns-3");
    },
    remove: async (namespace: string) => void removed.push(namespace),
  };
  const warned: string[] = [];
  const log = {
    warn: ({ event, namespace }: LogEntry) => void warned.push(event, String(namespace)),
  };

  await repairSpare({ maker, pool }, log);

  assert.deepEqual(removed, ["ns-1"]);
  assert.deepEqual(warned, ["sandbox-broken", "ns-1"]);
  assert.equal(pool.spareCount, 2);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal(pool.spareCount, 4);
});

test("replaces broken prepared sandboxes without a pod taking one", async () => {
  const { clock, pool } = aPool(1);
  pool.start([]);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal((await pool.dropBroken(async () => [])).length, 1);
  clock.next(Number.POSITIVE_INFINITY);
  await settled();
  assert.equal(pool.spareCount, 1);
});

test("closing waits for the sandbox that is being created", async () => {
  const clock = new VirtualClock();
  const making = Promise.withResolvers<void>();
  const make = async () => {
    await making.promise;
    return { namespace: "ns-0", address: "10.64.0.2", hostInterface: "veth0" };
  };
  const pool = new SandboxPool({ size: 1, clock, make, onError: () => undefined });
  pool.start([]);
  clock.next(Number.POSITIVE_INFINITY);
  let isClosed = false;
  const closed = pool.close().then(() => {
    isClosed = true;
  });
  await settled();
  assert.equal(isClosed, false);
  making.resolve();
  await closed;
  assert.equal(pool.spareCount, 1);
});

test("a closed pool creates nothing", async () => {
  const { clock, pool, made } = aPool(2);
  pool.start([]);
  await pool.close();
  assert.equal(clock.pending, 0);
  assert.equal(made.length, 0);
});

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
