import { Fleet } from "../../src/fleet.ts";
import type { NodeSpec, PodSpec, Profile } from "../../src/types.ts";

export function aNode(
  name: string,
  parts: Partial<NodeSpec> & { cpu?: string; zone?: string } = {},
): NodeSpec {
  const { cpu = "4", zone, labels, ...rest } = parts;
  return {
    name,
    allocatable: { cpu, memory: "16Gi", "ephemeral-storage": "50Gi", pods: "110" },
    ...rest,
    labels: { "kubernetes.io/hostname": name, ...(zone === undefined ? {} : { zone }), ...labels },
  };
}

export function aPod(
  name: string,
  parts: Partial<PodSpec> & { cpu?: string; memory?: string } = {},
): PodSpec {
  const { cpu = "500m", memory = "512Mi", ...rest } = parts;
  return { name, namespace: "default", containers: [{ requests: { cpu, memory } }], ...rest };
}

export function aFleet(nodes: readonly NodeSpec[], profile: Profile = "pack"): Fleet {
  const fleet = new Fleet({ profile });
  for (const node of nodes) fleet.setNode(node);
  return fleet;
}

export function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `r${i}`);
}
