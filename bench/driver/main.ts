import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import { systemClock } from "../../agent/src/clock.ts";
import { readDriverOptions } from "../../agent/src/driver/config/read-driver-options.ts";
import { readTaskOptions } from "../../agent/src/driver/config/read-task-options.ts";
import type { TaskDriver } from "../../agent/src/driver/driver-service.ts";
import { openTaskDriver } from "../../agent/src/driver/tasks/open-task-driver.ts";
import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { pluginMemory } from "./plugin-memory.ts";

const { signal } = new AbortController();
const STATS_ROUNDS = 200;
const EXEC_ROUNDS = 20;

/**
 * Measures what Nomad's tasks cost the driver: `driver [--tasks N] [--idle SECONDS]`. Needs root. Times are medians of
 * consecutive calls. CPU time is that of the driver's own process, without the nerdctl processes that it starts.
 */
export async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { tasks: { type: "string", default: "20" }, idle: { type: "string", default: "10" } },
  });
  const host = await startTestHost();
  const driver = await openTaskDriver({ options: optionsOn(host), clock: systemClock, log: () => undefined });
  try {
    const ids: string[] = [];
    const starts = await repeat(Number(values.tasks), async () => void ids.push(await start(driver, host)));
    const [first = ""] = ids;
    const request = { taskId: first, command: ["true"], timeout: undefined };
    const execs = await repeat(EXEC_ROUNDS, async () => void (await driver.exec(request, signal)));
    const stats = await repeat(STATS_ROUNDS, () => oneSample(driver, first));
    const idle = await idleCost(driver, ids, Number(values.idle));
    const removals = await repeat(ids.length, async (i) => driver.destroy(ids[i] ?? "", true));
    const result = {
      bench: "driver",
      tasks: ids.length,
      startToRunningMs: starts.medianMs,
      startCpuMs: starts.cpuMs,
      execRoundTripMs: execs.medianMs,
      execCpuMs: execs.cpuMs,
      statsSampleMs: stats.medianMs,
      statsSampleCpuMs: stats.cpuMs,
      cpuPercentWithStatsEverySecond: idle,
      destroyMs: removals.medianMs,
      pluginMemoryMib: await pluginMemory(host, ids.length),
    };
    for (const [name, value] of Object.entries(result)) console.log(name.padEnd(34), value);
    console.log(JSON.stringify(result));
  } finally {
    await driver.close();
    await host.close();
  }
}

// An empty map.
const NO_CONFIG = Buffer.from([0x80]);

function optionsOn(host: TestHost) {
  return {
    ...readDriverOptions(NO_CONFIG),
    ...{
      containerdAddress: host.containerd.address,
      containerdNamespace: host.namespace,
      nerdctl: host.nerdctlPath,
    },
    ...{ dataDir: join(host.dir, "driver"), runDir: join(host.dir, "driver-run") },
  };
}

async function start(driver: TaskDriver, host: TestHost): Promise<string> {
  const allocId = randomUUID();
  const id = `${allocId}/web/${allocId.slice(0, 8)}`;
  const task = TaskConfig.fromPartial({
    id,
    name: "web",
    allocId,
    stdoutPath: "/dev/null",
    stderrPath: "/dev/null",
  });
  await driver.start(task, { ...taskOptions(host), command: "sleep", args: ["1000"] }, signal);
  return id;
}

function taskOptions(host: TestHost) {
  const image = Buffer.from(host.image);
  // {"image": …}, with a string of less than 256 bytes.
  const msgpack = Buffer.concat([
    Buffer.from([0x81, 0xa5]),
    Buffer.from("image"),
    Buffer.from([0xd9, image.length]),
    image,
  ]);
  return readTaskOptions(msgpack, optionsOn(host));
}

async function oneSample(driver: TaskDriver, id: string): Promise<void> {
  for await (const _ of driver.stats(id, 1_000, signal)) return;
}

/** CPU in percent of a core while Nomad reads a sample of every task each second. */
async function idleCost(driver: TaskDriver, ids: readonly string[], seconds: number): Promise<number> {
  const stop = new AbortController();
  const before = process.cpuUsage();
  const readers = ids.map(async (id) => {
    for await (const _ of driver.stats(id, 1_000, stop.signal));
  });
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  const { user, system } = process.cpuUsage(before);
  stop.abort();
  await Promise.all(readers);
  return round((user + system) / 1e4 / seconds);
}

async function repeat(count: number, run: (index: number) => Promise<void>) {
  const times: number[] = [];
  const before = process.cpuUsage();
  for (let i = 0; i < count; i += 1) {
    const began = performance.now();
    await run(i);
    times.push(performance.now() - began);
  }
  const { user, system } = process.cpuUsage(before);
  const sorted = times.sort((a, b) => a - b);
  return { medianMs: round(sorted[Math.floor(count / 2)] ?? 0), cpuMs: round((user + system) / 1e3 / count) };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
