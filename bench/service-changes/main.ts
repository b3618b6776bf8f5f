import { parseArgs } from "node:util";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { cpuSeconds, residentMb } from "../apply/process-cost.ts";
import { startCoordinatorProcess } from "../fleet/coordinator-process.ts";
import { joinToken, SocketAgents } from "../fleet/socket-agents.ts";
import { applyServices } from "./apply-services.ts";
import { type AppliedRules, KernelAgents } from "./kernel-agents.ts";
import { nowMs, Round } from "./round.ts";

type Result = Readonly<Record<string, number>>;

interface Sizes {
  readonly agents: number;
  readonly kernels: number;
  readonly services: number;
  readonly endpoints: number;
  readonly rounds: number;
  readonly affinity: boolean;
}

const LIMIT_MS = 900_000;
/** The ratio of room to pods. With this spare room every pod fits a node at once. */
const SPARE = 1.3;
/** A prime, so the rounds cover pods all over the fleet. */
const STRIDE = 7_919;
const MAX_PODS_LOOKED_AT = 1_000;

/**
 * Measures the time from the change of one pod to the rules of every host. Needs root: `service-changes [--agents N]
 * [--kernels N] [--services N] [--endpoints N] [--rounds N] [--affinity]`
 */
export async function main(): Promise<void> {
  const text = (value: string) => ({ type: "string", default: value }) as const;
  const { values } = parseArgs({
    options: {
      agents: text("1000"),
      kernels: text("2"),
      services: text("1000"),
      endpoints: text("10"),
      rounds: text("60"),
      affinity: { type: "boolean", default: false },
    },
  });
  const sizes: Sizes = {
    agents: Number(values.agents),
    kernels: Number(values.kernels),
    services: Number(values.services),
    endpoints: Number(values.endpoints),
    rounds: Number(values.rounds),
    affinity: values.affinity,
  };
  const result = await measure(sizes);
  const width = Math.max(...Object.keys(result).map((name) => name.length));
  for (const [name, value] of Object.entries(result))
    console.log(`${name.padEnd(width)}  ${value.toFixed(1).padStart(10)}`);
  console.log(JSON.stringify({ bench: "service-changes", ...sizes, ...result }));
}

async function measure(sizes: Sizes): Promise<Result> {
  const room = Math.ceil(((sizes.services * sizes.endpoints) / sizes.agents) * SPARE);
  let round: Round | undefined;
  let whole = 0;
  let kernelCpuMs = 0;
  const coordinator = await startCoordinatorProcess();
  const kernels = new KernelAgents();
  const agents = new SocketAgents({
    host: (node) => ({ address: addressOf(Number(node.slice(1))), pods: room }),
    onServices: (node, update) => round?.received(node, update),
  });
  const onApplied = (applied: AppliedRules): void => {
    kernelCpuMs = Math.max(kernelCpuMs, applied.cpuMs);
    if (round === undefined) whole += 1;
    else round.applied(applied);
  };
  try {
    await agents.start(coordinator, sizes.agents);
    await applyServices(coordinator, sizes);
    const startedMs = performance.now();
    await kernels.start(coordinator, await joinToken(coordinator), sizes.kernels, onApplied);
    await waitFor(() => whole >= sizes.kernels, { what: "hosts have all rules", limitMs: LIMIT_MS });
    const result: Record<string, number> = {
      "agents with rules: start → all applied (ms)": performance.now() - startedMs,
    };
    for (const [what, atOnce, rounds] of [
      ["one change", 1, sizes.rounds],
      ["100 at once", Math.min(100, sizes.services), Math.ceil(sizes.rounds / 3)],
    ] as const) {
      const before = { cpuSeconds: cpuSeconds(coordinator.pid), kernelCpuMs };
      const done: Round[] = [];
      for (let index = 0; index < rounds; index++) {
        round = new Round(nowMs(), change(agents, sizes, index, atOnce), sizes);
        await round.end(LIMIT_MS);
        done.push(round);
      }
      Object.assign(result, resultOf(what, done));
      const spentMs = (cpuSeconds(coordinator.pid) - before.cpuSeconds) * 1000;
      result[`${what}: coordinator's processor time (ms)`] = spentMs / rounds;
      result[`${what}: an agent's, without nft's (ms)`] = (kernelCpuMs - before.kernelCpuMs) / rounds;
    }
    result["coordinator resident (MB)"] = residentMb(coordinator.pid);
    return result;
  } finally {
    agents.close();
    await kernels.close();
    await coordinator.close();
  }
}

/**
 * Makes one pod of each of some services unready; every other round makes the same pods ready again. Returns the
 * resulting numbers of endpoints.
 */
function change(
  agents: SocketAgents,
  { agents: count, endpoints }: Sizes,
  index: number,
  atOnce: number,
): Map<string, number> {
  const ready = index % 2 === 1;
  const expected = new Map<string, number>();
  const first = Math.floor(index / 2) * STRIDE;
  for (let step = 0; expected.size < atOnce; step++) {
    const agent = (first + step) % count;
    const nth = Math.floor(step / count);
    if (nth > MAX_PODS_LOOKED_AT) throw new Error(`there are no pods of ${atOnce} services`);
    const pod = agents.podOf(agent, nth);
    if (pod === undefined) continue;
    const key = `${pod.namespace}/${pod.workloadName}`;
    if (expected.has(key)) continue;
    expected.set(key, ready ? endpoints : endpoints - 1);
    agents.setReady(agent, pod, ready);
  }
  return expected;
}

function resultOf(what: string, rounds: readonly Round[]): Result {
  const received = rounds.flatMap(({ receivedMs }) => receivedMs);
  const last = rounds.map(({ receivedMs }) => Math.max(...receivedMs));
  const onApplied = rounds.flatMap(({ inForceMs }) => inForceMs);
  const result: Record<string, number> = {};
  for (const [name, values] of [
    ["an agent receives it", received],
    ["the last agent receives it", last],
    ["rules applied", onApplied],
  ] as const) {
    if (values.length === 0) continue;
    for (const share of [0.5, 0.99])
      result[`${what}: ${name}, p${share * 100} (ms)`] = quantile(values, share);
    result[`${what}: ${name}, longest (ms)`] = Math.max(...values);
  }
  result[`${what}: bytes to an agent`] = rounds.reduce((sum, { bytes }) => sum + bytes, 0) / rounds.length;
  return result;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function addressOf(node: number): string {
  return `10.200.${node >> 8}.${node & 255}`;
}
