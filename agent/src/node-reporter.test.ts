import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { UsageMeter } from "./capacity/usage-meter.ts";
import { NodeReporter, type NodeReporterOptions } from "./node-reporter.ts";
import type { ClaimState } from "./volumes/volumes.ts";

test("devices are added to the host's resources, but never replace them", () => {
  const { reporter } = aReporter({
    devices: () => ({
      capacity: { "example.com/gpu": 2, cpu: 99 },
      allocatable: { "example.com/gpu": 1 },
    }),
  });
  const { capacity, allocatable } = reporter.report();
  assert.deepEqual([capacity["example.com/gpu"], capacity.cpu], ["2", "4"]);
  assert.deepEqual([allocatable["example.com/gpu"], allocatable.cpu], ["1", "4"]);
});

test("reports runtime classes and SELinux", () => {
  const { reporter } = aReporter({
    features: { seLinux: true, runtimeClasses: { kata: "/k", gvisor: "/g" } },
  });
  const { selinux, runtimeClasses } = reporter.report();
  assert.deepEqual([selinux, runtimeClasses], [true, ["gvisor", "kata"]]);
});

test("a journal that can't be written is reported as disk pressure", () => {
  const { reporter, changes } = aReporter();
  const pressure = () => reporter.report().conditions.find(({ type }) => type === "DiskPressure");
  assert.equal(pressure()?.status, false);
  reporter.impaired("states", "the journal could not be written: ENOSPC");
  assert.deepEqual(pressure(), {
    type: "DiskPressure",
    status: true,
    reason: "JournalNotWritten",
    message: "the journal could not be written: ENOSPC",
  });
  assert.equal(changes.count, 1);
  reporter.impaired("states", undefined);
  assert.equal(pressure()?.status, false);
});

test("reports claims at once if more than their use has changed", async () => {
  let claims: readonly ClaimState[] | Error = [];
  const { reporter, changes } = aReporter({
    claims: async () => {
      if (claims instanceof Error) throw claims;
      return claims;
    },
  });
  const check = async () => {
    reporter.checkClaims();
    await new Promise((resolve) => setImmediate(resolve));
    return changes.count;
  };
  assert.equal(await check(), 0);
  const db = { namespace: "shop", name: "db", capacityBytes: 100, usedBytes: 1, users: ["u1"] };
  claims = [db];
  assert.equal(await check(), 1);
  assert.deepEqual(reporter.report().claims, [
    { namespace: "shop", name: "db", capacityBytes: 100n, usedBytes: 1n, podUids: ["u1"] },
  ]);
  claims = [{ ...db, usedBytes: 50 }];
  assert.equal(await check(), 1);
  assert.equal(reporter.report().claims[0]?.usedBytes, 50n);
  claims = new Error("the disk doesn't answer");
  assert.equal(await check(), 1);
  assert.equal(reporter.report().claims.length, 1, "as it was");
  claims = [{ ...db, users: [] }];
  assert.equal(await check(), 2);
});

test("lists images once after several pulls within seconds, and reports a changed list", async () => {
  const clock = new VirtualClock();
  let images: readonly string[] = ["app:1"];
  let listings = 0;
  const { reporter, changes } = aReporter({
    clock,
    runtime: {
      version: async () => ({ containerd: "2", nerdctl: "2" }),
      listImages: async () => {
        listings += 1;
        return images;
      },
    },
  });
  const closing = new AbortController();
  const running = reporter.run(closing.signal);
  await clock.run(1_000);
  assert.equal(listings, 1);

  images = ["app:1", "app:2", "app:3"];
  for (let pull = 0; pull < 3; pull++) {
    reporter.imagesChanged();
    await clock.run(1_000);
  }
  await clock.run(10_000);
  assert.equal(listings, 2);
  assert.deepEqual(reporter.report().images, images);
  assert.equal(changes.count, 1);

  reporter.imagesChanged();
  await clock.run(10_000);
  assert.deepEqual([listings, changes.count], [3, 1]);

  reporter.imagesChanged();
  closing.abort();
  await running;
  await clock.run(10_000);
  assert.equal(listings, 3);
});

test("damaged files are a condition of the node, which is absent if there are none", () => {
  let damage: string | undefined;
  const { reporter } = aReporter({ damage: () => damage });
  const types = () => reporter.report().conditions.map(({ type }) => type);
  assert.deepEqual(types(), ["RuntimeReady", "NetworkReady", "DiskPressure"]);

  damage = "journal/states/a.state is damaged (checksum differs): it is read back";

  const found = reporter.report().conditions.find(({ type }) => type === "DataDamaged");
  assert.equal(found?.status, true);
  assert.equal(found?.message, damage);
});

function aReporter(change: Partial<NodeReporterOptions> = {}) {
  const clock = new VirtualClock();
  const changes = { count: 0 };
  const amounts = { cpu: "4", memory: "1Gi", "ephemeral-storage": "1Gi", pods: "110" };
  const reporter = new NodeReporter({
    damage: () => undefined,
    clock,
    runtime: { version: async () => ({ containerd: "", nerdctl: "" }), listImages: async () => [] },
    capacity: {
      report: () => ({
        capacity: amounts,
        allocatable: amounts,
        labels: {},
        os: "",
        kernel: "",
        architecture: "",
        diskPressure: { pressure: false, reason: "DiskHasRoom", message: "" },
      }),
    },
    usage: new UsageMeter({ clock, procDir: "/proc", readBusyMs: () => 0 }),
    labels: {},
    addresses: ["192.0.2.1", "2001:db8::1"],
    networks: () => ["192.0.2.0/24"],
    features: { seLinux: false, runtimeClasses: {} },
    devices: () => ({ capacity: {}, allocatable: {} }),
    claims: async () => [],
    podCount: () => 0,
    onChange: () => {
      changes.count += 1;
    },
    ...change,
  });
  return { reporter, changes };
}
