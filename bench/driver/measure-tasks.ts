import { setTimeout } from "node:timers/promises";
import type { TestHost } from "../../hack/lib/test-host.ts";
import type { InstalledPlugin } from "./installed-plugin.ts";

const EXEC_ROUNDS = 20;
/** The time after which the streams have sent their first samples and the starts cause no more work. */
const SETTLE_MS = 5_000;
const SAMPLE_EVERY_MS = 1_000;

export interface TaskCosts {
  readonly tasks: number;
  readonly startToRunningMs: number;
  readonly startCpuMs: number;
  readonly execRoundTripMs: number;
  readonly execCpuMs: number;
  /** The number of statistics samples that the tasks' streams sent during the measurement. */
  readonly samples: number;
  readonly samplesMissing: number;
  readonly sampleCpuMs: number;
  readonly cpuPercentWithStatsEverySecond: number;
  /** The CPU use without streams, which is the cost of an idle plugin. */
  readonly cpuPercentIdle: number;
  readonly memoryMb: number;
  readonly memoryMaxMb: number;
  readonly memoryPrivateMb: number;
  readonly destroyMs: number;
}

/**
 * Measures tasks. Memory is that of the process with all tasks and their statistics: the median and the maximum of one
 * reading each second.
 */
export async function measureTasks(
  plugin: InstalledPlugin,
  host: TestHost,
  { tasks, seconds }: { readonly tasks: number; readonly seconds: number },
): Promise<TaskCosts> {
  await plugin.configure(host);
  const ids: string[] = [];
  const starts = await repeat(plugin, tasks, async () => void ids.push(await plugin.start(host)));
  const execs = await repeat(plugin, EXEC_ROUNDS, () => plugin.exec(ids[0] ?? ""));
  await setTimeout(SETTLE_MS);
  const idle = await watch(plugin, seconds);
  let samples = 0;
  const streams = ids.map((id) => plugin.stats(id).on("data", () => (samples += 1)));
  await setTimeout(SETTLE_MS);
  samples = 0;
  const busy = await watch(plugin, seconds);
  const counted = samples;
  for (const stream of streams) stream.cancel();
  const removals = await repeat(plugin, ids.length, (i) => plugin.destroy(ids[i] ?? ""));
  const resident = busy.memory.map((it) => it.residentBytes).toSorted((a, b) => a - b);
  return {
    tasks,
    startToRunningMs: starts.medianMs,
    startCpuMs: starts.cpuMs,
    execRoundTripMs: execs.medianMs,
    execCpuMs: execs.cpuMs,
    samples: counted,
    samplesMissing: Math.max(0, tasks * seconds - counted),
    sampleCpuMs: (busy.cpuPercent * 10 * seconds) / Math.max(1, counted),
    cpuPercentWithStatsEverySecond: busy.cpuPercent,
    cpuPercentIdle: idle.cpuPercent,
    memoryMb: (resident[Math.floor(resident.length / 2)] ?? 0) / 1e6,
    memoryMaxMb: (resident.at(-1) ?? 0) / 1e6,
    memoryPrivateMb: (busy.memory.at(-1)?.privateBytes ?? 0) / 1e6,
    destroyMs: removals.medianMs,
  };
}

async function watch(plugin: InstalledPlugin, seconds: number) {
  const memory = [];
  const beganMs = performance.now();
  const cpuBefore = plugin.cpuMs();
  for (let i = 0; i < seconds; i += 1) {
    await setTimeout(SAMPLE_EVERY_MS);
    memory.push(plugin.memory());
  }
  return { memory, cpuPercent: ((plugin.cpuMs() - cpuBefore) / (performance.now() - beganMs)) * 100 };
}

async function repeat(plugin: InstalledPlugin, count: number, run: (index: number) => Promise<void>) {
  const times: number[] = [];
  const before = plugin.cpuMs();
  for (let i = 0; i < count; i += 1) {
    const began = performance.now();
    await run(i);
    times.push(performance.now() - began);
  }
  const sorted = times.toSorted((a, b) => a - b);
  return { medianMs: sorted[Math.floor(count / 2)] ?? 0, cpuMs: (plugin.cpuMs() - before) / count };
}
