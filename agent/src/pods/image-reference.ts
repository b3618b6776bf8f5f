import type { PullPolicy } from "./pod.ts";

/** Returns Kubernetes' default: a moving reference (`:latest`, no tag) is always queried, a fixed one only when it is missing. */
export function defaultPullPolicy(reference: string): PullPolicy {
  if (reference.includes("@")) return "IfNotPresent";
  const name = reference.slice(reference.lastIndexOf("/") + 1);
  const colon = name.indexOf(":");
  const tag = colon < 0 ? "latest" : name.slice(colon + 1);
  return tag === "latest" ? "Always" : "IfNotPresent";
}
