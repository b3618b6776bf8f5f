import type { PullPolicy } from "./pod.ts";

/** Kubernetes' default: a reference that may move (`:latest`, no tag) is always asked for, a fixed one only when missing. */
export function defaultPullPolicy(reference: string): PullPolicy {
  if (reference.includes("@")) return "IfNotPresent";
  const name = reference.slice(reference.lastIndexOf("/") + 1);
  const colon = name.indexOf(":");
  const tag = colon < 0 ? "latest" : name.slice(colon + 1);
  return tag === "latest" ? "Always" : "IfNotPresent";
}
