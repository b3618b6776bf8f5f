import type { Pod } from "../pod.ts";
import type { PodFacts } from "../pod-facts.ts";

type Reader = (pod: Pod, facts: PodFacts) => string;

const FIELDS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ["metadata.name", (pod) => pod.name],
  ["metadata.namespace", (pod) => pod.namespace],
  ["metadata.uid", (pod) => pod.uid],
  ["spec.nodeName", (_, facts) => facts.nodeName],
  ["spec.serviceAccountName", (pod) => pod.serviceAccount ?? ""],
  ["status.podIP", (_, facts) => facts.podIps[0] ?? ""],
  ["status.podIPs", (_, facts) => facts.podIps.join(",")],
  ["status.hostIP", (_, facts) => facts.hostIps[0] ?? ""],
  ["status.hostIPs", (_, facts) => facts.hostIps.join(",")],
]);

const ENTRY = /^metadata\.(labels|annotations)\['([^']+)'\]$/;

/**
 * Returns the value of a `field_ref`, whose paths are those of Kubernetes. A missing label or annotation is empty.
 * Returns undefined for an unknown path.
 */
export function podField(path: string, pod: Pod, facts: PodFacts): string | undefined {
  const read = FIELDS.get(path);
  if (read !== undefined) return read(pod, facts);
  const [, map, key = ""] = ENTRY.exec(path) ?? [];
  if (map === undefined) return undefined;
  const entries = (map === "labels" ? pod.labels : pod.annotations) ?? {};
  return Object.hasOwn(entries, key) ? entries[key] : "";
}

export function isPodField(path: string): boolean {
  return FIELDS.has(path) || ENTRY.test(path);
}
