import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { type CgroupLimits, readCgroupLimits } from "./cgroup-limits.ts";

const GIBIBYTE = 2 ** 30;

/** Reads limits from the given files under /sys/fs/cgroup and the given content of /proc/1/cgroup. */
async function limitsOf(
  t: TestContext,
  ofInit: string,
  files: Record<string, string>,
): Promise<CgroupLimits> {
  const dir = await mkdtemp(join(tmpdir(), "forage-cgroup-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const all = {
    "proc/1/cgroup": ofInit,
    ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`sys/${name}`, text])),
  };
  for (const [name, text] of Object.entries(all)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), `${text}\n`);
  }
  return readCgroupLimits(join(dir, "sys"), join(dir, "proc"));
}

test("a plain host with cgroup v2 has no limit except its processors", async (t) => {
  const files = {
    "cpuset.cpus.effective": "0-7",
    "init.scope/memory.max": "max",
    "init.scope/cpu.max": "max 100000",
  };
  assert.deepEqual(await limitsOf(t, "0::/init.scope", files), { cpuMilli: 8_000 });
});

test("a plain host with cgroup v1 has no limit either", async (t) => {
  const files = {
    "memory/memory.limit_in_bytes": "9223372036854771712",
    "cpu/cpu.cfs_quota_us": "-1",
    "cpu/cpu.cfs_period_us": "100000",
    "cpuset/cpuset.cpus": "0-1,4",
  };
  assert.deepEqual(await limitsOf(t, "4:memory:/\n3:cpuset:/\n1:cpu,cpuacct:/\n0::/", files), {
    cpuMilli: 3_000,
  });
});

test("a machine in a cgroup namespace has the limits of its root cgroup", async (t) => {
  const files = {
    "memory.max": String(2 * GIBIBYTE),
    "cpu.max": "150000 100000",
    "cpuset.cpus.effective": "0-7",
  };
  assert.deepEqual(await limitsOf(t, "0::/init.scope", files), {
    cpuMilli: 1_500,
    memoryBytes: 2 * GIBIBYTE,
  });
});

test("without a cgroup namespace, the lowest limit between the root and process 1 counts", async (t) => {
  const files = {
    "memory/memory.limit_in_bytes": "9223372036854771712",
    "memory/machine/memory.limit_in_bytes": String(3 * GIBIBYTE),
    "memory/machine/m1/memory.limit_in_bytes": String(4 * GIBIBYTE),
    "memory/other/memory.limit_in_bytes": "1",
    "cpu/machine/m1/cpu.cfs_quota_us": "50000",
    "cpu/machine/m1/cpu.cfs_period_us": "100000",
  };
  const limits = await limitsOf(t, "4:memory:/machine/m1\n1:cpu,cpuacct:/machine/m1", files);
  assert.deepEqual(limits, { cpuMilli: 500, memoryBytes: 3 * GIBIBYTE });
});

test("unreadable files mean no limit", async (t) => {
  assert.deepEqual(await limitsOf(t, "", {}), {});
  assert.deepEqual(await limitsOf(t, "0::/../../etc", { "memory.max": "" }), {});
});
