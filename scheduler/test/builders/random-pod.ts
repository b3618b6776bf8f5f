import type { Random } from "@forage/common/random";
import type {
  ContainerSpec,
  LabelSelector,
  NodeSelectorTerm,
  NodeSpec,
  PodAffinity,
  PodAffinityTerm,
  PodSpec,
  SelectorRequirement,
  Taint,
  Toleration,
  TopologySpreadConstraint,
} from "../../src/types.ts";

const APPS = ["web", "db", "cache", "job"];
const TIERS = ["gold", "silver"];
const NAMESPACES = ["default", "default", "other"];
const KEYS = ["zone", "rack", "kubernetes.io/hostname", "hostname", "disk"];
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;
const CPUS = ["100m", "0.5", "1500u", "1", "1.5", "250m", "0", "2e0", ".25", "1e-1"];
const MEMORIES = ["128Mi", "1Gi", "0.5Gi", "1e8", "100M", "1500000k", "64Ki", "2147483648000m", "0"];

export function randomNode(random: Random, name: string): NodeSpec {
  const labels: Record<string, string> = {};
  if (random.chance(0.9)) labels["kubernetes.io/hostname"] = name;
  if (random.chance(0.85)) labels.zone = random.pick(["z1", "z2", "z3"]);
  else if (random.chance(0.5)) labels["topology.kubernetes.io/zone"] = random.pick(["z1", "z2"]);
  if (random.chance(0.6)) labels.rack = random.pick(["r1", "r2", "r3", "r4"]);
  if (random.chance(0.6)) labels.disk = random.pick(["ssd", "hdd"]);
  if (random.chance(0.8)) labels.gen = random.pick(["1", "2", "10", "007", "x"]);
  const taints: Taint[] = [];
  while (random.chance(0.25)) {
    const valued = random.chance(0.7);
    taints.push({
      key: random.pick(["gpu", "team"]),
      effect: random.pick(EFFECTS),
      ...(valued ? { value: random.pick(["a", "b"]) } : {}),
    });
  }
  return {
    name,
    labels,
    ...(taints.length > 0 ? { taints } : {}),
    ...(random.chance(0.07) ? { unschedulable: true } : {}),
    ...(random.chance(0.3) ? { runtimeClasses: ["gvisor"] } : {}),
    ...(random.chance(0.4)
      ? { images: { "img:1": 400e6, ...(random.chance(0.5) ? { "img:2": 5e9 } : {}) } }
      : {}),
    allocatable: {
      cpu: random.pick(["2", "3500m", "8", "12500m"]),
      memory: random.pick(["4Gi", "8Gi", "16Gi", "7G"]),
      "ephemeral-storage": random.pick(["20Gi", "5Gi"]),
      pods: random.pick(["4", "9", "110"]),
      ...(random.chance(0.3) ? { "nvidia.com/gpu": random.pick(["1", "4"]) } : {}),
    },
  };
}

/** Returns a pod template. `rich` controls how many kinds of rules it has. */
export function randomPod(random: Random, name: string, rich: number): PodSpec {
  const has = (scale: number) => random.chance(rich * scale);
  const labels = { app: random.pick(APPS), ...(random.chance(0.5) ? { tier: random.pick(TIERS) } : {}) };
  return {
    name,
    namespace: random.pick(NAMESPACES),
    labels,
    containers: randomContainers(random, has(0.6)),
    ...(has(0.3) ? { initContainers: randomInits(random) } : {}),
    ...(has(0.7) ? { priority: random.pick([0, 5, 10, 100]) } : {}),
    ...(has(0.1) ? { preemptionPolicy: "Never" as const } : {}),
    ...(has(0.25) ? { nodeSelector: { disk: random.pick(["ssd", "hdd"]) } } : {}),
    ...(has(0.5) ? { tolerations: [randomToleration(random), randomToleration(random)] } : {}),
    ...(has(0.5) ? { nodeAffinity: randomNodeAffinity(random) } : {}),
    ...(has(0.4) ? { podAffinity: randomAffinity(random, 0.4) } : {}),
    ...(has(0.4) ? { podAntiAffinity: randomAffinity(random, 0.5) } : {}),
    ...(has(0.6) ? { topologySpread: randomSpread(random) } : {}),
    ...(has(0.1) ? { claimNodes: [random.pick(["n0", "n1", "n2"])] } : {}),
    ...(has(0.1) ? { runtimeClass: "gvisor" } : {}),
    ...(has(0.3) ? { images: ["img:1", "img:2"] } : {}),
    ...(random.chance(0.5) ? { workload: `w-${labels.app}`, revision: random.pick(["1", "2"]) } : {}),
  };
}

function randomContainers(random: Random, ports: boolean): ContainerSpec[] {
  return Array.from({ length: 1 + random.below(2) }, () => {
    const requests: Record<string, string> = {};
    if (random.chance(0.85)) requests.cpu = random.pick(CPUS);
    if (random.chance(0.85)) requests.memory = random.pick(MEMORIES);
    if (random.chance(0.15)) requests["ephemeral-storage"] = random.pick(["1Gi", "3Gi"]);
    if (random.chance(0.1)) requests["nvidia.com/gpu"] = random.pick(["1", "2", "0"]);
    const hostPorts = [{ port: random.pick([80, 443]), protocol: random.pick(["", "TCP", "UDP"]) }];
    const address = random.chance(0.7) ? { hostIP: random.pick(["", "10.0.0.1", "10.0.0.2"]) } : {};
    return {
      requests,
      ...(random.chance(0.1) ? { limits: { cpu: "600m", memory: "200Mi" } } : {}),
      ...(ports && random.chance(0.6) ? { hostPorts: hostPorts.map((p) => ({ ...p, ...address })) } : {}),
    };
  });
}

function randomInits(random: Random): NonNullable<PodSpec["initContainers"]> {
  return Array.from({ length: 1 + random.below(3) }, () => ({
    requests: { cpu: random.pick(CPUS), memory: random.pick(MEMORIES) },
    ...(random.chance(0.4) ? { restartPolicy: "Always" as const } : {}),
  }));
}

function randomToleration(random: Random): Toleration {
  if (random.chance(0.1)) return { operator: "Exists" };
  if (random.chance(0.15)) return { key: "node.kubernetes.io/unschedulable", operator: "Exists" };
  const exists = random.chance(0.4);
  return {
    key: random.pick(["gpu", "team"]),
    operator: exists ? "Exists" : random.pick(["", "Equal"] as const),
    ...(exists ? {} : { value: random.pick(["a", "b", ""]) }),
    ...(random.chance(0.6) ? { effect: random.pick(EFFECTS) } : {}),
  };
}

function randomRequirement(random: Random): SelectorRequirement {
  const operator = random.pick(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Gt", "Lt"] as const);
  if (operator === "Gt" || operator === "Lt") {
    return {
      key: random.pick(["gen", "gen", "gen", "disk"]),
      operator,
      values: [random.pick(["1", "2", "2", "10", "5", "-5", "x"])],
    };
  }
  const [key, values] = random.pick([
    ["zone", ["z1", "z2"]],
    ["disk", ["ssd"]],
    ["rack", ["r1", "r2", "r3"]],
  ] as const);
  return operator === "In" || operator === "NotIn" ? { key, operator, values } : { key, operator };
}

function randomTerm(random: Random): NodeSelectorTerm {
  const fields = random.chance(0.15);
  const field = { key: "metadata.name", operator: random.pick(["In", "In", "NotIn"] as const) };
  return {
    ...(random.chance(0.9) ? { matchExpressions: [randomRequirement(random)] } : {}),
    ...(fields ? { matchFields: [{ ...field, values: [random.pick(["n0", "n1", "n2", "n9"])] }] } : {}),
  };
}

// Malformed preferences make kube-scheduler fail the pod, so only a few are generated.
function randomNodeAffinity(random: Random): NonNullable<PodSpec["nodeAffinity"]> {
  const parses = ({ matchExpressions = [] }: NodeSelectorTerm) =>
    matchExpressions.every(
      (e) => !e.values?.some((value) => value === "-5" || (value === "x" && e.operator !== "In")),
    );
  const preferred = Array.from({ length: 1 + random.below(2) }, () => ({
    weight: random.pick([0, 1, 10, 100]),
    preference: randomTerm(random),
  })).filter((p) => random.chance(0.05) || parses(p.preference));
  return {
    ...(random.chance(0.5)
      ? { required: Array.from({ length: 1 + random.below(2) }, () => randomTerm(random)) }
      : {}),
    ...(random.chance(0.6) ? { preferred } : {}),
  };
}

export function randomSelector(random: Random): LabelSelector {
  if (random.chance(0.08)) return {};
  if (random.chance(0.25)) {
    const operator = random.pick(["In", "NotIn", "Exists", "DoesNotExist"] as const);
    const valued = operator === "In" || operator === "NotIn";
    return {
      matchExpressions: [{ key: "tier", operator, ...(valued ? { values: [random.pick(TIERS)] } : {}) }],
    };
  }
  return {
    matchLabels: { app: random.pick(APPS), ...(random.chance(0.2) ? { tier: random.pick(TIERS) } : {}) },
  };
}

function randomPodTerm(random: Random): PodAffinityTerm {
  return {
    topologyKey: random.pick(KEYS),
    ...(random.chance(0.95) ? { labelSelector: randomSelector(random) } : {}),
    ...(random.chance(0.25) ? { namespaces: random.pick([["other"], ["default", "other"], []]) } : {}),
  };
}

function randomAffinity(random: Random, required: number): PodAffinity {
  const weighted = Array.from({ length: 1 + random.below(2) }, () => ({
    weight: random.pick([1, 7, 50, 100]),
    term: randomPodTerm(random),
  }));
  return {
    ...(random.chance(required) ? { required: [randomPodTerm(random)] } : {}),
    ...(random.chance(0.15) ? { required: [randomPodTerm(random), randomPodTerm(random)] } : {}),
    ...(random.chance(0.6) ? { preferred: weighted } : {}),
  };
}

function randomSpread(random: Random): TopologySpreadConstraint[] {
  return Array.from({ length: 1 + random.below(2) }, () => ({
    maxSkew: 1 + random.below(3),
    topologyKey: random.pick(KEYS),
    whenUnsatisfiable: random.pick(["DoNotSchedule", "ScheduleAnyway"] as const),
    ...(random.chance(0.95) ? { labelSelector: randomSelector(random) } : {}),
    ...(random.chance(0.35) ? { minDomains: 1 + random.below(4) } : {}),
    ...(random.chance(0.15) ? { nodeAffinityPolicy: random.pick(["Honor", "Ignore"] as const) } : {}),
    ...(random.chance(0.25) ? { nodeTaintsPolicy: random.pick(["Honor", "Ignore"] as const) } : {}),
    ...(random.chance(0.15) ? { matchLabelKeys: ["tier"] } : {}),
  }));
}
