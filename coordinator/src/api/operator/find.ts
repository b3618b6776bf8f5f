import { CoordinatorError } from "../../errors.ts";
import { hint } from "../../model/hint.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry } from "../../state/entries.ts";
import { type KeptPod, keptPods } from "../../state/kept-pods.ts";

/** The largest number of suggested names if a pod is not found. */
const MAX_SUGGESTIONS = 3;

/** A pod that was found. */
export interface FoundPod {
  readonly pod: PodEntry;
  /** Set if the pod has failed and is gone. Its status and logs are kept until this time. */
  readonly keptUntilMs?: number;
}

/**
 * Finds a pod by its name or a prefix of its uid, or else a kept failed pod. @throws CoordinatorError INVALID, NOT_FOUND.
 */
export function findPodOrKept(
  state: ClusterView,
  namespace: string,
  nameOrUid: string,
  nowMs: number,
): FoundPod {
  const kept = nameOrUid === "" ? undefined : findKept(state, namespace, nameOrUid, nowMs);
  if (kept === undefined) return { pod: findPod(state, namespace, nameOrUid) };
  return { pod: kept.entry, keptUntilMs: kept.untilMs };
}

/**
 * Finds a pod that may run. @throws CoordinatorError INVALID, NOT_FOUND, or FAILED_PRECONDITION for a failed pod of which
 * only logs are kept.
 */
export function findPresentPod(
  state: ClusterView,
  namespace: string,
  nameOrUid: string,
  nowMs: number,
): PodEntry {
  const { pod, keptUntilMs } = findPodOrKept(state, namespace, nameOrUid, nowMs);
  if (keptUntilMs === undefined) return pod;
  const { name } = pod.record;
  throw new CoordinatorError(
    "FAILED_PRECONDITION",
    `pod ${name} failed and was stopped: only its logs and its last status are kept; read the logs with \`${hint(namespace, `logs ${name}`)}\``,
  );
}

function findKept(
  state: ClusterView,
  namespace: string,
  nameOrUid: string,
  nowMs: number,
): KeptPod | undefined {
  if (state.pod(namespace, nameOrUid) !== undefined) return undefined;
  const kept = keptPods(state, namespace, nowMs);
  const byName = kept.find(({ entry }) => entry.record.name === nameOrUid);
  if (byName !== undefined) return byName;
  if (state.pods(namespace).some(({ record }) => record.uid.startsWith(nameOrUid))) return undefined;
  const [byUid, ...others] = kept.filter(({ entry }) => entry.record.uid.startsWith(nameOrUid));
  return others.length === 0 ? byUid : undefined;
}

/** Finds a pod by its name or a prefix of its uid. @throws CoordinatorError INVALID, or NOT_FOUND with similar names. */
function findPod(state: ClusterView, namespace: string, nameOrUid: string): PodEntry {
  if (namespace === "") throw new CoordinatorError("INVALID", "namespace must not be empty");
  if (nameOrUid === "") throw new CoordinatorError("INVALID", "pod must not be empty");
  const exact = state.pod(namespace, nameOrUid);
  if (exact !== undefined) return exact;
  const pods = state.pods(namespace);
  const matches = pods.filter((pod) => pod.record.uid.startsWith(nameOrUid));
  if (matches.length === 1 && matches[0] !== undefined) return matches[0];
  if (matches.length > 1)
    throw new CoordinatorError(
      "INVALID",
      `"${nameOrUid}" is the prefix of the uids of ${matches.length} pods`,
    );
  const near = pods
    .map((pod) => pod.record.name)
    .filter((name) => name.includes(nameOrUid) || nameOrUid.includes(name));
  const hint = near.length === 0 ? "" : `; did you mean ${near.slice(0, MAX_SUGGESTIONS).join(", ")}?`;
  throw new CoordinatorError(
    "NOT_FOUND",
    `there is no pod "${nameOrUid}" in namespace "${namespace}"${hint}`,
  );
}

/** Returns the pod's node. @throws CoordinatorError FAILED_PRECONDITION if the pod has none. */
export function nodeOfPod(pod: PodEntry): string {
  if (pod.record.node !== "") return pod.record.node;
  throw new CoordinatorError("FAILED_PRECONDITION", `pod ${pod.record.name} has no node yet`);
}

/**
 * Returns the container's name. An empty name stands for the main container. @throws CoordinatorError if the pod has no
 * such container.
 */
export function containerOf(pod: PodEntry, name: string): string {
  const { container, sidecars = [], initContainers = [] } = pod.record.template ?? {};
  const names = [container, ...sidecars, ...initContainers].flatMap((c) => (c === undefined ? [] : [c.name]));
  if (name === "" || names.includes(name)) return name;
  throw new CoordinatorError(
    "NOT_FOUND",
    `pod ${pod.record.name} has no container "${name}"; it has ${names.join(", ")}`,
  );
}
