import { CoordinatorError } from "../../errors.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry } from "../../state/entries.ts";

/** Names suggested when one is not found. */
const maxSuggestions = 3;

/** By name or by the beginning of the uid; NOT_FOUND says what there is instead. */
export function findPod(state: ClusterView, namespace: string, nameOrUid: string): PodEntry {
  if (namespace === "") throw new CoordinatorError("INVALID", "namespace must not be empty");
  if (nameOrUid === "") throw new CoordinatorError("INVALID", "pod must not be empty");
  const exact = state.pod(namespace, nameOrUid);
  if (exact !== undefined) return exact;
  const pods = state.pods(namespace);
  const matches = pods.filter((pod) => pod.record.uid.startsWith(nameOrUid));
  if (matches.length === 1 && matches[0] !== undefined) return matches[0];
  if (matches.length > 1)
    throw new CoordinatorError("INVALID", `"${nameOrUid}" begins the uids of ${matches.length} pods`);
  const near = pods
    .map((pod) => pod.record.name)
    .filter((name) => name.includes(nameOrUid) || nameOrUid.includes(name));
  const hint = near.length === 0 ? "" : `; did you mean ${near.slice(0, maxSuggestions).join(", ")}?`;
  throw new CoordinatorError(
    "NOT_FOUND",
    `there is no pod "${nameOrUid}" in namespace "${namespace}"${hint}`,
  );
}

/** The pod must be on a node, or there is nothing to look into. */
export function nodeOfPod(pod: PodEntry): string {
  if (pod.record.node !== "") return pod.record.node;
  throw new CoordinatorError("FAILED_PRECONDITION", `pod ${pod.record.name} has no node yet`);
}

/** Checks the container's name; empty is the main one. */
export function containerOf(pod: PodEntry, name: string): string {
  const { container, sidecars = [], initContainers = [] } = pod.record.template ?? {};
  const names = [container, ...sidecars, ...initContainers].flatMap((c) => (c === undefined ? [] : [c.name]));
  if (name === "" || names.includes(name)) return name;
  throw new CoordinatorError(
    "NOT_FOUND",
    `pod ${pod.record.name} has no container "${name}"; it has ${names.join(", ")}`,
  );
}
