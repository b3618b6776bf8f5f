import assert from "node:assert/strict";
import { test } from "node:test";
import { CPUUsage_Fields, MemoryUsage_Fields, TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import { DriverError } from "../driver-error.ts";
import { signalOf } from "./exit.ts";
import { inspectTask } from "./inspect-task.ts";
import { parseLogins } from "./registry-logins.ts";
import { coreMhzOf, limitsOf } from "./resource-limits.ts";
import { signalName } from "./signal-name.ts";
import { containerNameOf, parseTaskId } from "./task-name.ts";
import { decodeTaskState, encodeTaskState, TASK_STATE_VERSION, type TaskState } from "./task-state.ts";
import { emptyReading, taskStats } from "./task-stats.ts";
import { toTimestamp } from "./timestamp.ts";

const ID = "5f0c1d9e-7a34-4b7e-9f50-0d9b1f1f2a11/web/0123abcd";
const STATE: TaskState = {
  ...{ id: ID, name: "web", allocId: "5f0c1d9e", containerId: "c", containerName: "n", image: "i" },
  ...{ startedAtMs: 1_500, bootId: "b", coreMhz: 2_000, process: { pid: 7, startTicks: 9, bootId: "b" } },
};

test("a container's name contains the invocation and differs for similar task names", () => {
  assert.match(containerNameOf("nomad", ID), /^nomad-web-5f0c1d9e-.*-0123abcd-[0-9a-f]{8}$/);
  const names = ["a/x y/01234567", "a/x_y/01234567", "a/x y/01234568"].map((id) =>
    containerNameOf("nomad", id),
  );
  assert.equal(new Set(names).size, 3);
  assert.ok(containerNameOf("nomad", `a/${"x".repeat(800)}/01234567`).length <= 200);
  for (const id of ["", "a/b", "a/b/xyz", "/b/01234567", "a//01234567", "a/b\n/01234567", "../b/01234567"])
    assert.throws(() => parseTaskId(id), DriverError, id);
});

test("a task's state survives encoding, and another version is rejected", () => {
  assert.deepEqual(decodeTaskState(TASK_STATE_VERSION, encodeTaskState(STATE)), STATE);
  for (const text of ["", "{}", "[]", "null", JSON.stringify({ ...STATE, process: { pid: "7" } })])
    assert.throws(() => decodeTaskState(TASK_STATE_VERSION, Buffer.from(text)), DriverError, text);
  assert.throws(() => decodeTaskState(0, encodeTaskState(STATE)), DriverError);
});

test("an inspected task has every message and time set", () => {
  const { task } = inspectTask(STATE, undefined);
  assert.deepEqual(task?.startedAt, { seconds: 1n, nanos: 5e8 });
  assert.deepEqual(task?.completedAt, { seconds: -62_135_596_800n, nanos: 0 });
  assert.deepEqual(task?.result, { exitCode: 0, signal: 0, oomKilled: false });
  const exit = { exitCode: 137, signal: 9, oomKilled: true, atMs: 2_000 };
  assert.deepEqual(inspectTask(STATE, exit).task?.completedAt, toTimestamp(2_000));
});

test("signals get their full name, and exit codes contain the signal", () => {
  for (const text of ["hup", "HUP", "SIGHUP", " sighup "]) assert.equal(signalName(text), "SIGHUP");
  assert.equal(signalName("SIGRTMIN+3"), "SIGRTMIN+3");
  for (const text of ["", "SIG", "SIGRTMIN+99", "9", "--all"])
    assert.throws(() => signalName(text), DriverError);
  assert.deepEqual([0, 7, 128, 129, 137, 192, 193].map(signalOf), [0, 0, 0, 1, 9, 64, 0]);
});

const aTask = (linux: object, memory: object = {}) =>
  TaskConfig.fromPartial({ resources: { linuxResources: linux, allocatedResources: { memory } } });

for (const [what, task, options, expected] of [
  ["nothing", aTask({}), {}, { limits: {}, tuning: {} }],
  [
    "memory, shares and CPUs",
    aTask({ memoryLimitBytes: 1000n, cpuShares: 500n, cpusetCpus: "0-1" }, { memoryMb: 1n }),
    {},
    { limits: { memoryLimitBytes: 1000, cpuShares: 500 }, tuning: { cpuset: "0-1" } },
  ],
  [
    "memory_max: the reservation becomes the soft limit",
    aTask({ memoryLimitBytes: 3n << 20n }, { memoryMb: 1n, memoryMaxMb: 3n }),
    {},
    { limits: { memoryLimitBytes: 3 << 20 }, tuning: { memorySoftLimitBytes: 1 << 20 } },
  ],
  [
    "memory_max of -1: no hard limit",
    aTask({ memoryLimitBytes: 1n << 20n }, { memoryMb: 1n, memoryMaxMb: -1n }),
    {},
    { limits: {}, tuning: { memorySoftLimitBytes: 1 << 20 } },
  ],
  [
    "a hard CPU limit: the task's share of all cores",
    aTask({ PercentTicks: 0.25 }),
    { cpuHardLimit: true },
    { limits: {}, tuning: { cpuPeriodMicros: 100_000, cpuQuotaMicros: 100_000 } },
  ],
  [
    "a CPU period of the job's own",
    aTask({ PercentTicks: 0.25 }),
    { cpuHardLimit: true, cpuPeriodMicros: 20_000 },
    { limits: {}, tuning: { cpuPeriodMicros: 20_000, cpuQuotaMicros: 20_000 } },
  ],
  [
    "memory settings of the job's own",
    aTask({ memoryLimitBytes: 3n << 20n }, { memoryMb: 1n, memoryMaxMb: 3n }),
    { memoryReservationBytes: 2 << 20, memorySwapBytes: -1, memorySwappiness: 0 },
    {
      limits: { memoryLimitBytes: 3 << 20 },
      tuning: { memorySoftLimitBytes: 2 << 20, memorySwapLimitBytes: -1, memorySwappiness: 0 },
    },
  ],
] as const)
  test(`limits: ${what}`, () =>
    assert.deepEqual(limitsOf(task, { cpuHardLimit: false, ...options }, 4), expected));

test("rejects memory settings that contradict the memory limit, with their path", () => {
  const limited = aTask({ memoryLimitBytes: 1n << 20n });
  for (const [task, options, expected] of [
    [limited, { memorySwapBytes: 1 }, /config\.memory_swap: .* at least/],
    [aTask({}), { memorySwapBytes: -1 }, /config\.memory_swap: the task has no memory limit/],
    [limited, { memoryReservationBytes: 2 << 20 }, /config\.memory_reservation: .* at most/],
  ] as const)
    assert.throws(() => limitsOf(task, { cpuHardLimit: false, ...options }, 4), expected);
});

test("derives one core's MHz from the task's share of the node", () => {
  assert.equal(coreMhzOf(aTask({ cpuShares: 500n, PercentTicks: 0.0625 }), 4), 2_000);
  assert.equal(coreMhzOf(aTask({}), 4), undefined);
});

test("a sample has the CPU usage since the previous one and names the measured values", () => {
  const usage = {
    ...{ cpuNanos: 3e9, userNanos: 2e9, systemNanos: 1e9, memoryBytes: 50, workingSetBytes: 40 },
    ...{ rssBytes: 30, cacheBytes: 20, throttledPeriods: 4 },
    processes: [{ pid: 7, startTicks: 1, userNanos: 2e9, systemNanos: 1e9, rssBytes: 25, swapBytes: 5 }],
  };
  const input = { id: "t", nowMs: 5_000, reading: { atMs: 12_000, usage }, coreMhz: 2_000 };
  const first = taskStats({ ...input, before: emptyReading(10_000) }).aggResourceUsage;
  assert.deepEqual([first?.cpu?.percent, first?.cpu?.userMode, first?.cpu?.totalTicks], [150, 100, 3_000]);
  assert.ok(first?.cpu?.measuredFields.includes(CPUUsage_Fields.THROTTLED_PERIODS));
  assert.ok(!first?.cpu?.measuredFields.includes(CPUUsage_Fields.THROTTLED_TIME));
  assert.deepEqual(first?.memory?.measuredFields, [
    MemoryUsage_Fields.RSS,
    MemoryUsage_Fields.CACHE,
    MemoryUsage_Fields.USAGE,
  ]);
  const idle = taskStats({ ...input, before: { atMs: 11_000, usage } }).aggResourceUsage;
  assert.equal(idle?.cpu?.percent, 0);
});

test("a sample lists each process, even if its id belonged to an earlier process", () => {
  const process = { pid: 7, startTicks: 5, userNanos: 2e9, systemNanos: 1e9, rssBytes: 25, swapBytes: 5 };
  const sums = { cpuNanos: 3e9, userNanos: 2e9, systemNanos: 1e9, memoryBytes: 50, workingSetBytes: 40 };
  const usage = { ...sums, rssBytes: 30, cacheBytes: 20, processes: [process] };
  const sample = (earlier: typeof process) => {
    const before = { atMs: 10_000, usage: { ...usage, processes: [earlier] } };
    const input = { id: "t", nowMs: 5_000, before, reading: { atMs: 12_000, usage }, coreMhz: 2_000 };
    return taskStats(input).resourceUsageByPid["7"];
  };
  const same = sample({ ...process, userNanos: 1e9, systemNanos: 0 });
  assert.deepEqual([same?.cpu?.userMode, same?.cpu?.systemMode, same?.cpu?.totalTicks], [50, 50, 2_000]);
  assert.deepEqual([same?.memory?.rss, same?.memory?.swap], [25n, 5n]);
  assert.deepEqual(same?.memory?.measuredFields, [MemoryUsage_Fields.RSS, MemoryUsage_Fields.SWAP]);
  assert.equal(sample({ ...process, startTicks: 4 })?.cpu?.percent, 150);
});

test("reads registry logins from Docker's file", () => {
  const auth = Buffer.from("me:a:b").toString("base64");
  const text = JSON.stringify({
    auths: { "https://index.docker.io/v1/": { auth }, "r.test:5000": { auth }, "no.test": {} },
  });
  const login = { username: "me", password: "a:b" };
  assert.deepEqual(parseLogins(text), [
    { server: "docker.io", ...login },
    { server: "r.test:5000", ...login },
  ]);
});
