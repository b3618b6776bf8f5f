import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ServiceState, ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { systemClock } from "../../agent/src/clock.ts";
import { runCommand } from "../../agent/src/network/run-command.ts";
import { KnownServices } from "../../agent/src/services/known-services.ts";
import { ServiceRules } from "../../agent/src/services/service-rules.ts";

const INSIDE = "FORAGE_BENCH_NETWORK";

interface Sizes {
  readonly services: number;
  readonly endpoints: number;
  readonly rounds: number;
}

/**
 * Measures the cost of service rules on one host, in its own network namespace: `services [--services N] [--endpoints
 * N] [--rounds N]`. Needs root.
 */
export async function main(): Promise<void> {
  const text = (value: string) => ({ type: "string", default: value }) as const;
  const { values } = parseArgs({
    options: { services: text("1000"), endpoints: text("10"), rounds: text("9") },
  });
  if (process.env[INSIDE] === undefined) {
    const args = [
      "--net",
      "--",
      process.execPath,
      ...process.execArgv,
      join(import.meta.dirname, "..", "main.ts"),
    ];
    const rest = ["services", ...process.argv.slice(2)];
    const env = { ...process.env, [INSIDE]: "1" };
    process.exitCode = spawnSync("unshare", [...args, ...rest], { stdio: "inherit", env }).status ?? 1;
    return;
  }
  const sizes = {
    services: Number(values.services),
    endpoints: Number(values.endpoints),
    rounds: Number(values.rounds),
  };
  const dir = mkdtempSync(join(tmpdir(), "forage-bench-services-"));
  try {
    const plain = await measure(sizes, 0, dir);
    const sticky = await measure({ ...sizes, services: Math.min(sizes.services, 200) }, 10_800, dir);
    for (const key of Object.keys(plain) as (keyof typeof plain)[])
      console.log(key.padEnd(34), String(plain[key]).padStart(10), String(sticky[key]).padStart(10));
    console.log(JSON.stringify({ bench: "services", ...sizes, plain, sticky }));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

async function measure({ services: count, endpoints, rounds }: Sizes, affinitySeconds: number, dir: string) {
  await runCommand("ip", ["link", "set", "lo", "up"]);
  await runCommand("ip", ["address", "replace", "10.64.0.1/16", "dev", "lo"]);
  const onProblem = (event: string, error: unknown): void => {
    throw new Error(event, { cause: error });
  };
  const known = await KnownServices.open({
    dir: join(dir, String(affinitySeconds)),
    clock: systemClock,
    onError: (error) => onProblem("services", error),
  });
  const aService = (index: number, moved = 0): ServiceState =>
    service(index, endpoints, affinitySeconds, moved);
  const all = Array.from({ length: count }, (_, index) => aService(index));
  known.apply(update({ full: true, upserts: all }));
  const rules = new ServiceRules({
    services: known,
    viewpoint: { node: "n0", reach: [4, 6] },
    table: "forage_bench_services",
    podCidr: "10.64.0.0/16",
    bridge: "lo",
    gateway: "10.64.0.1",
    run: runCommand,
    onProblem,
  });
  const full = await timed(() => rules.start());
  const changed: Timing[] = [];
  const added: Timing[] = [];
  const removed: Timing[] = [];
  const apply = (fields: Parameters<typeof update>[0], name: string): Promise<Timing> =>
    timed(() => {
      known.apply(update(fields));
      return rules.update(new Set([`bench/${name}`]));
    });
  for (let round = 0; round < rounds; round++) {
    const index = (round * 97) % count;
    changed.push(await apply({ upserts: [aService(index, round + 1)] }, `s${index}`));
    const extra = count + round;
    added.push(await apply({ upserts: [aService(extra)] }, `s${extra}`));
    removed.push(await apply({ removals: [{ namespace: "bench", name: `s${extra}` }] }, `s${extra}`));
  }
  await rules.close();
  await known.close();
  await runCommand("nft", ["delete", "table", "ip", "forage_bench_services"]);
  return {
    services: count,
    affinity: affinitySeconds > 0 ? "ClientIP" : "None",
    "whole table, ms": full.ms,
    "a service's endpoints, p50 ms": median(changed.map(({ ms }) => ms)),
    "a service's endpoints, max ms": Math.max(...changed.map(({ ms }) => ms)),
    "another service, p50 ms": median(added.map(({ ms }) => ms)),
    "a service less, p50 ms": median(removed.map(({ ms }) => ms)),
    "agent's CPU for a change, p50 ms": median(changed.map(({ cpuMs }) => cpuMs)),
  };
}

interface Timing {
  readonly ms: number;
  /** The CPU time of this process, without nft. */
  readonly cpuMs: number;
}

async function timed(run: () => Promise<void>): Promise<Timing> {
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  await run();
  const { user, system } = process.cpuUsage(cpu);
  return { ms: rounded(performance.now() - startMs), cpuMs: rounded((user + system) / 1000) };
}

function service(index: number, endpoints: number, affinitySeconds: number, moved: number): ServiceState {
  return ServiceState.fromPartial({
    namespace: "bench",
    name: `s${index}`,
    type: "ClusterIP",
    virtualIps: [`10.96.${(index >> 8) & 255}.${index & 255}`],
    ports: [{ name: "http", port: 80, protocol: "TCP", targetPort: 8080 }],
    affinitySeconds,
    endpoints: Array.from({ length: endpoints }, (_, pod) => ({
      pod: `p${pod}`,
      node: `n${pod}`,
      podIp: `10.64.${(index >> 8) & 255}.${index & 255}`,
      hostIp: `192.0.2.${pod + 1}`,
      hostPorts: [20_000 + ((index + (pod === 1 ? moved : 0)) % 9_000)],
    })),
  });
}

function update(fields: Parameters<typeof ServiceUpdate.fromPartial>[0]): ServiceUpdate {
  return ServiceUpdate.fromPartial({
    clusterDomain: "cluster.local",
    virtualIpRanges: ["10.96.0.0/16"],
    ...fields,
  });
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
