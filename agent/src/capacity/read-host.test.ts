import assert from "node:assert/strict";
import { test } from "node:test";
import { hostReader, limited } from "./read-host.ts";

test("reads this host", async () => {
  const { bootId, os, kernel, architecture } = await hostReader.identity();
  assert.match(bootId, /^[0-9a-f-]{36}$/);
  assert.match(os, /\w/);
  assert.match(kernel, /^\d+\.\d+/);
  assert.ok(["amd64", "arm64"].includes(architecture));
  const { cpuMilli, memoryBytes, disk } = await hostReader.measure("/");
  assert.ok(cpuMilli >= 100 && memoryBytes > 2 ** 26, `${cpuMilli} ${memoryBytes}`);
  assert.ok(disk.totalBytes >= disk.availableBytes && disk.availableBytes > 0);
});

test("the smaller of the machine's resources and its cgroup limits counts", () => {
  const has = { cpuMilli: 2_000, memoryBytes: 1_000 };
  assert.deepEqual(limited(has, {}), has);
  assert.deepEqual(limited(has, { cpuMilli: 500, memoryBytes: 9_000 }), {
    cpuMilli: 500,
    memoryBytes: 1_000,
  });
});
