import type { PullPolicy } from "./pod.ts";

/**
 * Returns Kubernetes' default pull policy: `Always` for a moving reference (`:latest` or no tag), else `IfNotPresent`.
 */
export function defaultPullPolicy(reference: string): PullPolicy {
  if (reference.includes("@")) return "IfNotPresent";
  const name = reference.slice(reference.lastIndexOf("/") + 1);
  const colon = name.indexOf(":");
  const tag = colon < 0 ? "latest" : name.slice(colon + 1);
  return tag === "latest" ? "Always" : "IfNotPresent";
}
