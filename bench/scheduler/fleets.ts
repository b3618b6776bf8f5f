import { Fleet, type PodSpec, type Profile } from "@forage/scheduler";

/** The rules of the four workloads, for the pods of one application. */
export const WORKLOADS = {
  plain: () => ({}),
  spread: (app: string) => ({
    topologySpread: [
      spreadBy("topology.kubernetes.io/zone", 1, app),
      spreadBy("kubernetes.io/hostname", 5, app),
    ],
  }),
  "anti-affinity": (app: string) => ({
    podAntiAffinity: { required: [{ topologyKey: "kubernetes.io/hostname", labelSelector: select(app) }] },
  }),
  "preferred affinity": (app: string) => ({
    podAffinity: {
      preferred: [
        { weight: 100, term: { topologyKey: "kubernetes.io/hostname", labelSelector: select(app) } },
      ],
    },
  }),
} as const satisfies Record<string, (app: string) => Partial<PodSpec>>;

export type Workload = keyof typeof WORKLOADS;

const ZONES = 10;
// All-distinct pods belong to this many applications, so some pods match their selectors, as in a real fleet.
const APPS = 50;

/** Returns nodes of 4 cpus and 32Gi in 10 zones, each with one pod already. */
export function fleetOf(nodes: number, profile: Profile): Fleet {
  const fleet = new Fleet({ profile });
  for (let i = 0; i < nodes; i++) {
    const name = `node-${i}`;
    const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": `zone-${i % ZONES}` };
    fleet.setNode({ name, labels, allocatable: { cpu: "4", memory: "32Gi", pods: "110" } });
    fleet.bind(podOf(`first-${i}`, "first", "100m", "500Mi"), name);
  }
  return fleet;
}

export function podOf(name: string, app: string, cpu: string, memory: string): PodSpec {
  return { name, namespace: "default", labels: { app }, containers: [{ requests: { cpu, memory } }] };
}

export function replicaOf(workload: Workload): PodSpec {
  return { ...podOf("replica", "app", "100m", "500Mi"), ...WORKLOADS[workload]("app") };
}

/**
 * Returns pods of which no two are alike: each has a label of its own, and requests from some thousands of
 * combinations.
 */
export function distinctPods(workload: Workload, count: number): PodSpec[] {
  return Array.from({ length: count }, (_, i) => {
    const app = `app-${i % APPS}`;
    const pod = podOf(`pod-${i}`, app, `${50 + (i % 101)}m`, `${400 + ((i * 7) % 201)}Mi`);
    return { ...pod, labels: { app, pod: `pod-${i}` }, ...WORKLOADS[workload](app) };
  });
}

function select(app: string): { matchLabels: Record<string, string> } {
  return { matchLabels: { app } };
}

function spreadBy(topologyKey: string, maxSkew: number, app: string) {
  return { topologyKey, maxSkew, whenUnsatisfiable: "DoNotSchedule" as const, labelSelector: select(app) };
}
