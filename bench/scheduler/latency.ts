import { Fleet } from "@forage/scheduler";
import { fleetOf, podOf } from "./fleets.ts";
import { bytesInUse, median, time } from "./measure.ts";

export interface Latencies {
  readonly nodes: number;
  readonly explainCpuMs: number;
  readonly preemptCpuMs: number;
  readonly preemptSpreadCpuMs: number;
}

export interface Memory {
  readonly nodes: number;
  readonly pods: number;
  readonly bytesPerNode: number;
  readonly bytesPerPod: number;
  readonly bytesPerDistinctPod: number;
}

const RUNS = 15;
// The compiler runs in parallel, and its CPU time would be counted too.
const WARM_UP = 20;

/**
 * Measures, on a full fleet with 10 pods of several priorities on each node, the time to explain why a pod doesn't fit
 * and to find pods that it could preempt.
 */
export function latencies(nodes: number): Latencies {
  const fleet = fleetOf(nodes, "pack");
  for (let i = 0; i < nodes; i++) {
    for (let p = 0; p < 9; p++) {
      fleet.bind(
        { ...podOf(`pod-${i}-${p}`, `app-${p}`, "400m", "3Gi"), priority: (p % 3) + 1 },
        `node-${i}`,
      );
    }
  }
  const waiting = { ...podOf("waiting", "app-1", "900m", "5Gi"), priority: 10 };
  const topologySpread = [
    {
      topologyKey: "topology.kubernetes.io/zone",
      maxSkew: 1,
      whenUnsatisfiable: "DoNotSchedule" as const,
      labelSelector: { matchLabels: { app: "app-1" } },
    },
  ];
  return {
    nodes,
    explainCpuMs: cpuOf(() => fleet.explain(waiting)),
    preemptCpuMs: cpuOf(() => fleet.preempt(waiting)),
    preemptSpreadCpuMs: cpuOf(() => fleet.preempt({ ...waiting, topologySpread })),
  };
}

export function memory(nodes: number, pods: number): Memory {
  const before = bytesInUse();
  const fleet = new Fleet();
  for (let i = 0; i < nodes; i++) {
    const name = `node-${i}`;
    const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": `zone-${i % 10}` };
    fleet.setNode({ name, labels, allocatable: { cpu: "4", memory: "32Gi", pods: "110" } });
  }
  fleet.placeBatch({ ...podOf("first", "first", "10m", "10Mi"), workload: "first" }, ["first"]);
  const withNodes = bytesInUse();
  for (let i = 0; i < pods; i += 10) {
    const names = Array.from({ length: 10 }, (_, r) => `app-${i}-${r}`);
    const app = `app-${i}`;
    fleet.placeBatch({ ...podOf(app, app, "100m", "500Mi"), workload: app }, names);
  }
  const withPods = bytesInUse();
  for (let i = 0; i < pods; i++) {
    const pod = podOf(`single-${i}`, `app-${i % 50}`, `${50 + (i % 101)}m`, `${400 + ((i * 7) % 201)}Mi`);
    fleet.bind({ ...pod, labels: { app: `app-${i % 50}`, pod: `single-${i}` } }, `node-${i % nodes}`);
  }
  const withDistinct = bytesInUse();
  fleet.nodeNames();
  return {
    nodes,
    pods,
    bytesPerNode: Math.round((withNodes - before) / nodes),
    bytesPerPod: Math.round((withPods - withNodes) / pods),
    bytesPerDistinctPod: Math.round((withDistinct - withPods) / pods),
  };
}

function cpuOf(work: () => void): number {
  for (let i = 0; i < WARM_UP; i++) work();
  return median(Array.from({ length: RUNS }, () => time(work).cpuMs));
}
