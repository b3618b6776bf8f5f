import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { type ContainerCgroup, findCgroup, guessCgroup, locate, readProcesses } from "./container-cgroup.ts";
import { readDetailedUsage, readUsage } from "./container-usage.ts";
import { keyedValue, parsePlaces, workingSet } from "./parse-cgroup.ts";

const V1 = "13:devices:/ns/c1\n5:memory:/ns/c1\n4:cpu,cpuacct:/ns/c1\n1:name=systemd:/ns/c1\n0::/ns/c1\n";
const V2 = "0::/system.slice/nerdctl-c1.scope\n";

for (const [what, text, expected] of [
  ["v1, or both", V1, { version: 1, memoryDir: "/r/memory/ns/c1", cpuDir: "/r/cpuacct/ns/c1" }],
  [
    "v2",
    V2,
    { version: 2, memoryDir: "/r/system.slice/nerdctl-c1.scope", cpuDir: "/r/system.slice/nerdctl-c1.scope" },
  ],
  [
    "v2 beside a named v1 hierarchy",
    `1:name=systemd:/x\n${V2}`,
    { version: 2, memoryDir: "/r/system.slice/nerdctl-c1.scope", cpuDir: "/r/system.slice/nerdctl-c1.scope" },
  ],
  ["nothing", "", undefined],
  ["a path with colons", "0::/a:b\n", { version: 2, memoryDir: "/r/a:b", cpuDir: "/r/a:b" }],
] as const) {
  test(`locates the cgroup: ${what}`, () => assert.deepEqual(locate(parsePlaces(text), "/r"), expected));
}

test("finds values by their whole key, and never returns a negative working set", () => {
  const text = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\ntotal_rss 30\nrss 4";
  const keys = ["oom_kill_disable", "oom_kill", "rss", "total_rss", "kill", "oom", ""];
  const values = [0, 2, 4, 30, undefined, undefined, undefined];
  assert.deepEqual(
    keys.map((key) => keyedValue(text, key)),
    values,
  );
  assert.equal(keyedValue("", "rss"), undefined);
  assert.equal(workingSet(10, 3), 7);
  assert.equal(workingSet(10, 30), 0);
  assert.equal(workingSet(10, undefined), 10);
});

test("reads the usage of cgroup v1", async (t) => {
  const cgroup = write(t, 1, {
    "cpuacct.usage": "123456789\n",
    "memory.usage_in_bytes": "5000000\n",
    "memory.stat": "cache 1\ninactive_file 7\ntotal_inactive_file 1000000\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
    "cgroup.procs": "12\n34\n",
  });
  assert.deepEqual(readUsage(cgroup), {
    cpuNanos: 123456789,
    memoryBytes: 5_000_000,
    workingSetBytes: 4_000_000,
    oomKills: 3,
  });
  assert.deepEqual(readProcesses(cgroup), [12, 34]);
});

test("reads the usage of cgroup v2", async (t) => {
  const cgroup = write(t, 2, {
    "cpu.stat": "usage_usec 1234\nuser_usec 1000\n",
    "memory.current": "5000000\n",
    "memory.stat": "anon 1\ninactive_file 1000000\n",
    "memory.events": "low 0\nhigh 0\nmax 4\noom 1\noom_kill 1\n",
    "cgroup.procs": "12\n",
  });
  assert.deepEqual(readUsage(cgroup), {
    cpuNanos: 1_234_000,
    memoryBytes: 5_000_000,
    workingSetBytes: 4_000_000,
    oomKills: 1,
  });
});

test("reads the detailed usage of cgroup v1 and v2", async (t) => {
  const procDir = mkdtempSync(join(tmpdir(), "forage-proc-"));
  t.after(() => rmSync(procDir, { recursive: true }));
  mkdirSync(join(procDir, "12"));
  // User and system time are the fields 14 and 15, the start is field 22.
  const stat = `12 (a ) b) S ${Array.from({ length: 40 }, (_, i) => i + 4).join(" ")}\n`;
  writeFileSync(join(procDir, "12", "stat"), stat);
  writeFileSync(join(procDir, "12", "status"), "Name:\ta\nVmRSS:\t    3 kB\nVmSwap:\t    0 kB\n");
  const processes = [
    ...[{ pid: 12, startTicks: 22, userNanos: 14e7, systemNanos: 15e7, rssBytes: 3072, swapBytes: 0 }],
  ];
  const v1 = write(t, 1, {
    "cpuacct.usage": "300\n",
    "cpuacct.usage_user": "200\n",
    "cpuacct.usage_sys": "100\n",
    "cpu.stat": "nr_periods 9\nnr_throttled 2\nthrottled_time 70\n",
    "memory.usage_in_bytes": "5000\n",
    "memory.stat": "cache 1\ntotal_cache 1000\ntotal_rss 3000\ntotal_swap 10\ntotal_inactive_file 500\n",
    "memory.max_usage_in_bytes": "6000\n",
    "memory.kmem.usage_in_bytes": "400\n",
    "cgroup.procs": "12\n34\n",
  });
  const common = { processes, memoryBytes: 5000, workingSetBytes: 4500, cpuNanos: 300_000 };
  const details = { throttledPeriods: 2, rssBytes: 3000, cacheBytes: 1000, swapBytes: 10, kernelBytes: 400 };
  assert.deepEqual(readDetailedUsage(v1, procDir), {
    ...common,
    ...details,
    ...{ cpuNanos: 300, userNanos: 200, systemNanos: 100, throttledNanos: 70, maxMemoryBytes: 6000 },
  });
  const v2 = write(t, 2, {
    "cpu.stat": "usage_usec 300\nuser_usec 200\nsystem_usec 100\nnr_throttled 2\nthrottled_usec 7\n",
    "memory.current": "5000\n",
    "memory.stat": "anon 3000\nfile 1000\nkernel 400\ninactive_file 500\n",
    "memory.peak": "6000\n",
    "memory.swap.current": "10\n",
    "cgroup.procs": "12\n",
  });
  assert.deepEqual(readDetailedUsage(v2, procDir), {
    ...common,
    ...details,
    ...{ userNanos: 200_000, systemNanos: 100_000, throttledNanos: 7_000, maxMemoryBytes: 6000 },
  });
});

for (const [what, file, version] of [
  ["v1", "memory/ns/c1/memory.usage_in_bytes", 1],
  ["v2 by cgroupfs", "ns/c1/memory.current", 2],
  ["v2 by systemd", "system.slice/nerdctl-c1.scope/memory.current", 2],
  ["elsewhere", "kubepods/c1/memory.current", undefined],
] as const) {
  test(`guesses the cgroup: ${what}`, async (t) => {
    const root = mkdtempSync(join(tmpdir(), "forage-cgroup-"));
    t.after(() => rmSync(root, { recursive: true }));
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), "1\n");
    const found = guessCgroup("ns", "c1", root);
    assert.equal(found?.version, version);
    if (found) assert.equal(found.memoryDir, dirname(join(root, file)));
  });
}

test("returns no usage for a cgroup without running processes", async (t) => {
  const files = { "cpu.stat": "usage_usec 1\n", "memory.current": "1\n", "cgroup.procs": "" };
  assert.equal(readUsage(write(t, 2, files)), undefined);
});

test("returns nothing for a cgroup or process that no longer exists", async () => {
  assert.equal(readUsage({ version: 1, memoryDir: "/nowhere", cpuDir: "/nowhere" }), undefined);
  assert.equal(readUsage({ version: 2, memoryDir: "/nowhere", cpuDir: "/nowhere" }), undefined);
  assert.deepEqual(readProcesses({ version: 2, memoryDir: "/nowhere", cpuDir: "/nowhere" }), []);
  assert.equal(findCgroup(2 ** 22 + 1), undefined);
});

function write(t: TestContext, version: 1 | 2, files: Record<string, string>): ContainerCgroup {
  const dir = mkdtempSync(join(tmpdir(), "forage-cgroup-"));
  t.after(() => rmSync(dir, { recursive: true }));
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return { version, memoryDir: dir, cpuDir: dir };
}
