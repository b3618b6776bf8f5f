import { randomOf } from "@forage/common/random";
import { Fleet, type PodKey, type Profile, podKey } from "@forage/scheduler";
import {
  complementary,
  devices,
  nodeSpec,
  type PackingWorkload,
  podSpec,
  type Size,
  tshirt,
} from "./packing-workloads.ts";

export interface Packing {
  readonly workload: string;
  readonly profile: Profile;
  readonly churn: boolean;
  readonly orders: number;
  readonly boundNodes: number;
  readonly boundCores: number;
  /** The ratio of used nodes to the lower bound: mean and worst over the arrival orders. */
  readonly nodesMean: number;
  readonly nodesWorst: number;
  readonly coresMean: number;
  readonly coresWorst: number;
  readonly unplacedPods: number;
  readonly unplacedGpus: number;
}

interface Outcome {
  readonly nodes: number;
  readonly cores: number;
  readonly unschedulable: readonly Size[];
}

const ORDERS = 10;

export function packing(profiles: readonly Profile[]): Packing[] {
  return [complementary(1), tshirt(1), devices(1)].flatMap((workload) =>
    profiles.flatMap((profile) => [false, true].map((churn) => summary(workload, profile, churn))),
  );
}

function summary(workload: PackingWorkload, profile: Profile, churn: boolean): Packing {
  const outcomes = Array.from({ length: ORDERS }, (_, i) => arrive(workload, profile, churn, i + 1));
  const bound = lowerBound(workload);
  const nodes = outcomes.map((outcome) => outcome.nodes / bound.nodes);
  const cores = outcomes.map((outcome) => outcome.cores / bound.cores);
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  const unschedulable = outcomes.flatMap((outcome) => outcome.unschedulable);
  return {
    workload: workload.name,
    profile,
    churn,
    orders: ORDERS,
    boundNodes: bound.nodes,
    boundCores: bound.cores,
    nodesMean: mean(nodes),
    nodesWorst: Math.max(...nodes),
    coresMean: mean(cores),
    coresWorst: Math.max(...cores),
    unplacedPods: unschedulable.length,
    unplacedGpus: unschedulable.reduce((sum, { gpu }) => sum + gpu, 0),
  };
}

/**
 * Places the pods one by one in a random order. With churn, it then removes half of them and places as many new ones.
 */
function arrive(workload: PackingWorkload, profile: Profile, churn: boolean, seed: number): Outcome {
  const random = randomOf(seed);
  const fleet = new Fleet({ profile });
  for (const [i, node] of random.shuffled(workload.nodes).entries()) fleet.setNode(nodeSpec(node, i));
  const sizes = new Map<PodKey, Size>();
  const place = (size: Size, index: number): Size | undefined => {
    const pod = podSpec(size, index);
    if (fleet.schedule(pod) === undefined) return size;
    sizes.set(podKey(pod), size);
    return undefined;
  };
  let unschedulable = random
    .shuffled(workload.pods)
    .map(place)
    .filter((size) => size !== undefined);
  if (churn) {
    const gone = random.shuffled([...sizes]).slice(0, Math.floor(sizes.size / 2));
    for (const [key] of gone) fleet.unbind(key);
    const again = random.shuffled([...gone.map(([, size]) => size), ...unschedulable]);
    unschedulable = again
      .map((size, i) => place(size, workload.pods.length + i))
      .filter((size) => size !== undefined);
  }
  const used = fleet.nodeNames().filter((name) => fleet.podsOn(name).length > 0);
  const shuffled = randomOf(seed).shuffled(workload.nodes);
  const cores = used.reduce((sum, name) => sum + (shuffled[Number(name.slice(5))]?.cpu ?? 0), 0) / 1000;
  return { nodes: used.length, cores, unschedulable };
}

/**
 * Returns a lower bound for every packing: the number of whole nodes, largest first, that cover each resource, and the
 * cores that cover cpu.
 */
function lowerBound({ pods, nodes }: PackingWorkload): { nodes: number; cores: number } {
  const resources = ["cpu", "memoryMi", "gpu"] as const;
  const counts = resources.map((resource) => {
    let left = pods.reduce((sum, pod) => sum + pod[resource], 0);
    const sizes = nodes.map((node) => node[resource]).sort((a, b) => b - a);
    const enough = sizes.findIndex((size) => {
      left -= size;
      return left <= 0;
    });
    return enough + 1;
  });
  return { nodes: Math.max(...counts), cores: leastCores(pods, nodes) };
}

/** Returns the cores of the cheapest fractional set of nodes that covers cpu and memory. */
function leastCores(pods: readonly Size[], nodes: readonly Size[]): number {
  const cpu = pods.reduce((sum, pod) => sum + pod.cpu, 0) / 1000;
  let memory = pods.reduce((sum, pod) => sum + pod.memoryMi, 0);
  // The nodes with the most memory per core come first. This is the number of their cores that covers the memory.
  let cores = 0;
  for (const node of [...nodes].sort((a, b) => b.memoryMi / b.cpu - a.memoryMi / a.cpu)) {
    const part = Math.min(1, memory / node.memoryMi);
    memory -= part * node.memoryMi;
    cores += (part * node.cpu) / 1000;
  }
  return Math.max(cpu, cores);
}
