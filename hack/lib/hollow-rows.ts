/**
 * Returns the live tables' message for a fleet with these numbers of nodes and pods, for browsers without such a fleet.
 */
export function hollowMessage(nodeCount: number, podCount: number): object {
  const nodes = Array.from({ length: nodeCount }, (_, index) => nodeRow(index, nodeCount, podCount));
  const pods = Array.from({ length: podCount }, (_, index) => podRow(index, nodeCount));
  return {
    ...{ reset: true, complete: true },
    nodes: Object.fromEntries(nodes.map((row) => [row.name, row])),
    pods: Object.fromEntries(pods.map((row) => [`${row.namespace}/${row.name}`, row])),
  };
}

/**
 * Returns the message of the workload `web` with one replica at each stage. One of them has pulled 40 % of its image.
 */
export function hollowRollout(namespace: string): object {
  const stages = [
    { node: "", state: "Pending", tone: "busy" },
    { state: "Placed", tone: "busy" },
    { state: "ImagePull", tone: "busy", pulledPercent: 40 },
    { state: "Starting", tone: "busy" },
    { state: "Running", tone: "good" },
  ];
  const pods = stages.map((stage, index) => ({ ...podRow(index + 1, 1), namespace, ready: 0, ...stage }));
  const web = {
    ...{ namespace, kind: "container_service", name: "web", tone: "busy", message: "", about: "" },
    ...{ replicas: 5, updated: 5, ready: 1, endpoints: 1, image: "web:1", owner: "", rolloutId: "" },
    ...{ generation: 1, updatedMs: 1_700_000_000_000, deleting: false },
  };
  return {
    ...{ reset: true, complete: true, resources: { [`${namespace}/container_service/web`]: web } },
    pods: Object.fromEntries(pods.map((row) => [`${row.namespace}/${row.name}`, row])),
  };
}

const ZONES = ["a", "b", "c"] as const;
const GIBIBYTE = 1024 ** 3;
/** The number of pods of which one has a problem. */
const TROUBLE_EVERY = 100;

function nodeRow(index: number, nodeCount: number, podCount: number) {
  return {
    ...{ name: nodeName(index), zone: ZONES[index % ZONES.length], state: "Ready", message: "" },
    ...{ cordoned: false, drain: "", version: "1.0.0", architecture: "x64", gateway: false },
    ...{ pods: Math.round(podCount / nodeCount), maxPods: 110 },
    ...{ cpu: [(index % 16) * 1000, 16_000], memory: [(index % 64) * GIBIBYTE, 64 * GIBIBYTE] },
    usage: [(index % 8) * 1000, (index % 32) * GIBIBYTE],
  };
}

function podRow(index: number, nodeCount: number) {
  const isBad = index % TROUBLE_EVERY === 0;
  return {
    ...{ namespace: "shop", name: `web-${index}`, uid: `uid-${index}`, workload: "container_service/web" },
    node: nodeName(index % nodeCount),
    ...{ state: isBad ? "CrashLoopBackOff" : "Running", tone: isBad ? "bad" : "good" },
    ...{ message: "", ready: isBad ? 0 : 1, containers: 1, restarts: isBad ? 3 : 0 },
    ...{ createdMs: 1_700_000_000_000, revision: "abc123", ip: "10.0.0.1" },
  };
}

function nodeName(index: number): string {
  return `edge-${String(index).padStart(4, "0")}`;
}
