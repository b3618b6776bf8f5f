import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { type System, startSystem } from "../../hack/system/system.ts";
import { type ApplyTimes, type BenchClient, benchClient } from "./client.ts";
import { measureFloor } from "./floor.ts";
import { idlePercent, residentMb } from "./process-cost.ts";

/** The number of rounds of each measurement. The median is shown. */
const ROUNDS = 3;
const KILL_ROUNDS = 10;
const IDLE_SECONDS = 30;
const GONE_LIMIT_MS = 120_000;

/**
 * Measures the time from apply to ready and from kill to running, memory and idle cost. Measures bare nerdctl in the
 * same run for comparison.
 */
export async function main(): Promise<void> {
  report(await measureApply());
}

/** Starts a system and returns its figures by name. */
export async function measureApply(): Promise<Readonly<Record<string, number>>> {
  const host = await startTestHost();
  try {
    const system = await startSystem(host, { coordinator: { logLevel: "warn" } });
    const client = benchClient(system);
    try {
      return await measure(host, system, client);
    } finally {
      client.close();
    }
  } finally {
    await host.close();
  }
}

async function measure(host: TestHost, system: System, client: BenchClient): Promise<Record<string, number>> {
  const result: Record<string, number> = {};
  const empty = { agent: residentMb(system.agent.pid), coordinator: residentMb(system.coordinator.pid) };
  result["agent resident, no pods (MB)"] = empty.agent;
  result["coordinator resident, no pods (MB)"] = empty.coordinator;
  const floors: number[] = [];
  const times: Record<number, ApplyTimes[]> = { 1: [], 20: [] };
  for (let round = 0; round < ROUNDS; round++) {
    floors.push(await measureFloor(host, 20));
    for (const count of [1, 20]) {
      times[count]?.push(await client.applyReplicas(`web-${round}`, host.image, count));
      if (round < ROUNDS - 1 || count === 1) await removeAll(client);
    }
  }
  result["floor: 20 × nerdctl run (s)"] = median(floors);
  result["apply → 1 ready (s)"] = median((times[1] ?? []).map(({ ready }) => ready));
  result["apply → 20 ready (s)"] = median((times[20] ?? []).map(({ ready }) => ready));
  result["apply → rollout of 20 succeeded (s)"] = median((times[20] ?? []).map(({ done }) => done));
  result["20 ready ÷ floor"] = (result["apply → 20 ready (s)"] ?? 0) / median(floors);
  result["scale 20 → 40 ready (s)"] = (await client.applyReplicas(`web-${ROUNDS - 1}`, host.image, 40)).ready;
  result["agent idle, 40 pods (% of a core)"] = await idlePercent(system.agent.pid, IDLE_SECONDS);
  result["coordinator idle, 40 pods (% of a core)"] = await idlePercent(system.coordinator.pid, IDLE_SECONDS);
  result["agent resident, 40 pods (MB)"] = residentMb(system.agent.pid);
  result["coordinator resident, 40 pods (MB)"] = residentMb(system.coordinator.pid);
  const kill = await measureKill(client, system);
  result["kill → running (s)"] = median(kill.times);
  result["kill → running, the quickest (s)"] = Math.min(...kill.times);
  result["floor: 1 × nerdctl run (s)"] = median(kill.floors);
  await removeAll(client);
  result["apply → 40 ready (s)"] = (await client.applyReplicas("web-all", host.image, 40)).ready;
  await removeAll(client);
  return result;
}

async function removeAll(client: BenchClient): Promise<void> {
  await client.deleteAll();
  await waitFor(async () => (await client.pods()).length === 0, {
    what: "all pods are gone",
    limitMs: GONE_LIMIT_MS,
  });
}

/**
 * Measures the time from SIGKILL to a container's process until the coordinator knows that a new container runs. Each
 * round also measures one `nerdctl run`, which every restart includes.
 */
async function measureKill(
  client: BenchClient,
  { host }: System,
): Promise<{ readonly times: readonly number[]; readonly floors: readonly number[] }> {
  const times: number[] = [];
  const floors: number[] = [];
  for (let index = 0; index < KILL_ROUNDS; index++) {
    floors.push(await measureFloor(host, 1));
    const pod = (await client.pods())[index];
    const id = pod?.status?.containers[0]?.containerId ?? "";
    const { stdout } = await host.nerdctl(["inspect", "--format", "{{.State.Pid}}", id]);
    const startedMs = performance.now();
    process.kill(Number(stdout.trim()), "SIGKILL");
    const isBack = async (): Promise<boolean> => {
      const now = (await client.pods()).find(({ uid }) => uid === pod?.uid)?.status?.containers[0];
      return now?.containerId !== id && now?.state?.$case === "running";
    };
    await waitFor(isBack, { what: "the container runs again", limitMs: 30_000, everyMs: 5 });
    times.push((performance.now() - startedMs) / 1000);
  }
  return { times, floors };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function report(result: Readonly<Record<string, number>>): void {
  const width = Math.max(...Object.keys(result).map((name) => name.length));
  for (const [name, value] of Object.entries(result))
    console.log(`${name.padEnd(width)}  ${value.toFixed(2).padStart(8)}`);
  console.log(JSON.stringify({ bench: "apply", ...result }));
}
