import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../clock.ts";
import { HostCapacity } from "./host-capacity.ts";
import type { HostMeasure, HostReader } from "./read-host.ts";

const GIBIBYTE = 2 ** 30;
const IDENTITY = { bootId: "boot", os: "Debian", kernel: "6.1", architecture: "amd64" };

class Scene {
  measure: HostMeasure = {
    cpuMilli: 2_000,
    memoryBytes: 8 * GIBIBYTE,
    disk: { totalBytes: 40 * GIBIBYTE, availableBytes: 20 * GIBIBYTE, totalInodes: 0, availableInodes: 0 },
  };
  timers: (() => void)[] = [];
  delayMs = 0;
  broken = false;
  looks = 0;
  readonly reader: HostReader = {
    identity: async () => IDENTITY,
    measure: async () => {
      this.looks++;
      if (this.broken) throw new Error("gone");
      return this.measure;
    },
  };
  readonly clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    schedule: (delayMs, run) => {
      this.delayMs = delayMs;
      this.timers.push(run);
      return () => {
        this.timers = this.timers.filter((it) => it !== run);
      };
    },
  };

  open(): Promise<HostCapacity> {
    const options = { nodeName: "n1", storagePath: "/", maxPods: 110, reserve: { cpuMilli: 500 } };
    return HostCapacity.open(options, this);
  }

  async tick(): Promise<void> {
    for (const run of this.timers.splice(0)) run();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("the report contains capacity, labels and the host's identity", async () => {
  const capacity = await new Scene().open();
  const report = capacity.report();
  assert.equal(report.capacity.cpu, "2");
  assert.equal(report.allocatable.cpu, "1500m", "the operator's reserve");
  assert.equal(
    report.allocatable.memory,
    `${Math.floor((8 * GIBIBYTE * 0.95) / 1_024)}Ki`,
    "the default reserve",
  );
  assert.deepEqual(report.labels, {
    "kubernetes.io/hostname": "n1",
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
  });
  assert.equal(capacity.bootId, "boot");
  assert.equal(report.diskPressure.pressure, false);
  capacity.close();
});

test("publishes a change once, and ignores slightly less disk space", async () => {
  const scene = new Scene();
  const capacity = await scene.open();
  let changes = 0;
  capacity.onChange(() => changes++);
  const disk = (availableGib: number) => {
    scene.measure = {
      ...scene.measure,
      disk: { ...scene.measure.disk, availableBytes: availableGib * GIBIBYTE },
    };
    return scene.tick();
  };
  await disk(19);
  assert.equal(changes, 0);
  await disk(1.5);
  assert.equal(changes, 1);
  assert.equal(capacity.report().diskPressure.pressure, true);
  await disk(2.5);
  assert.equal(changes, 1, "not yet enough room");
  await disk(3.5);
  assert.equal(changes, 2);
  capacity.close();
});

test("a failed measurement changes nothing, and the next one is made", async () => {
  const scene = new Scene();
  const capacity = await scene.open();
  scene.broken = true;
  await scene.tick();
  scene.broken = false;
  scene.measure = { ...scene.measure, cpuMilli: 4_000 };
  await scene.tick();
  assert.equal(capacity.report().capacity.cpu, "4");
  capacity.close();
  await scene.tick();
  assert.equal(scene.looks, 3);
});

test("measures a full disk more often, until it has room", async () => {
  const scene = new Scene();
  const capacity = await scene.open();
  assert.equal(scene.delayMs, 60_000);
  const room = (availableBytes: number) => {
    scene.measure = { ...scene.measure, disk: { ...scene.measure.disk, availableBytes } };
    return scene.tick();
  };
  await room(0);
  assert.equal(capacity.report().diskPressure.pressure, true);
  assert.equal(scene.delayMs, 10_000);
  await room(20 * GIBIBYTE);
  assert.equal(capacity.report().diskPressure.pressure, false);
  assert.equal(scene.delayMs, 60_000);
  capacity.close();
});
