import type { Profile } from "@forage/scheduler";
import { distinctPods, fleetOf, replicaOf, WORKLOADS, type Workload } from "./fleets.ts";
import { fastest } from "./measure.ts";

export interface Throughput {
  readonly profile: Profile;
  readonly workload: Workload;
  readonly nodes: number;
  readonly pods: "identical" | "distinct";
  readonly placed: number;
  readonly perCpuSecond: number;
  readonly perWallSecond: number;
}

// Enough pods that filling caches and compiling code no longer affect the figure.
const IDENTICAL = { 1000: 4_000, 5000: 20_000, 50000: 40_000 } as const;
const DISTINCT = { 1000: 3_000, 5000: 3_000, 50000: 1_000 } as const;

export type NodeCount = keyof typeof IDENTICAL;

export function throughput(profile: Profile, nodes: NodeCount): Throughput[] {
  const names = Object.keys(WORKLOADS) as Workload[];
  return names.flatMap((workload) => [
    identical(profile, workload, nodes),
    distinct(profile, workload, nodes),
  ]);
}

function identical(profile: Profile, workload: Workload, nodes: NodeCount): Throughput {
  const names = Array.from({ length: countOf(workload, IDENTICAL[nodes], nodes) }, (_, i) => `replica-${i}`);
  let placed = 0;
  const timing = fastest(nodes > 5_000 ? 2 : 5, () => {
    const fleet = fleetOf(nodes, profile);
    return () => {
      placed = fleet.placeBatch(replicaOf(workload), names).filter((node) => node !== undefined).length;
    };
  });
  return row(profile, workload, nodes, "identical", names.length, placed, timing);
}

function distinct(profile: Profile, workload: Workload, nodes: NodeCount): Throughput {
  const pods = distinctPods(workload, countOf(workload, DISTINCT[nodes], nodes));
  let placed = 0;
  const timing = fastest(nodes > 5_000 ? 2 : 4, () => {
    const fleet = fleetOf(nodes, profile);
    return () => {
      placed = 0;
      for (const pod of pods) if (fleet.schedule(pod) !== undefined) placed++;
    };
  });
  return row(profile, workload, nodes, "distinct", pods.length, placed, timing);
}

/** Returns the number of pods. Anti-affinity allows only one pod per node. */
function countOf(workload: Workload, count: number, nodes: number): number {
  return workload === "anti-affinity" ? Math.min(count, nodes) : count;
}

function row(
  profile: Profile,
  workload: Workload,
  nodes: number,
  pods: Throughput["pods"],
  asked: number,
  placed: number,
  { wallMs, cpuMs }: { wallMs: number; cpuMs: number },
): Throughput {
  const perSecond = (ms: number) => Math.round((asked / ms) * 1000);
  return {
    profile,
    workload,
    nodes,
    pods,
    placed,
    perCpuSecond: perSecond(cpuMs),
    perWallSecond: perSecond(wallMs),
  };
}
