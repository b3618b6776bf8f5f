import type { Supposition } from "@forage/proto/forage/operator/v1/operator";
import { DrainRecord } from "@forage/proto/forage/store/v1/store";
import { ApplyResourcesRequest, type ForageResource } from "@forage/proto/forest/v1/forage";
import { type ApplyOptions, applyResources } from "../api/forage/apply.ts";
import { disruptionOf, type FleetHealth } from "../control/eviction/disruption.ts";
import { rewriteNode } from "../control/eviction/record-node-conditions.ts";
import { CoordinatorError } from "../errors.ts";
import type { StoreWrite } from "../model/batches.ts";
import { resourceKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { MAX_REPLICAS } from "../model/workload.ts";
import type { Sandbox } from "../plan/sandbox.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry } from "../state/entries.ts";
import { HOSTNAME_LABEL, labelOf } from "../state/node-labels.ts";
import { namesLike, nodeLike } from "./supposed-nodes.ts";

/** The most suppositions in one request. */
export const MAX_SUPPOSITIONS = 100;
const MAX_ADDED = 1_000;
const SHORT_LABELS: Readonly<Record<string, string>> = {
  zone: "topology.kubernetes.io/zone",
  hostname: HOSTNAME_LABEL,
};
const HOW_TO_LIST = "`forage node ls` lists the nodes";

type Change = Exclude<Supposition["supposition"], undefined>;

/** Validates suppositions. Throws INVALID or NOT_FOUND with the path of an invalid one. */
export function checkSuppositions(suppositions: readonly Supposition[], state: ClusterView): void {
  if (suppositions.length === 0)
    throw new CoordinatorError("INVALID", "suppositions: at least one is needed");
  if (suppositions.length > MAX_SUPPOSITIONS)
    throw new CoordinatorError("INVALID", `suppositions: at most ${MAX_SUPPOSITIONS} in one request`);
  const any = suppositions.some(({ supposition }) => supposition?.$case === "loseAnyNode");
  if (any && suppositions.length > 1)
    throw new CoordinatorError(
      "INVALID",
      "suppositions: lose_any_node is tried out alone; make another request for the others",
    );
  for (const [index, { supposition }] of suppositions.entries())
    check(supposition, `suppositions[${index}]`, state);
}

function check(change: Change | undefined, path: string, state: ClusterView): void {
  switch (change?.$case) {
    case undefined:
      throw new CoordinatorError("INVALID", `${path}: it supposes nothing`);
    case "loseNode":
      nodeAt(change.value, `${path}.lose_node`, state);
      return;
    case "loseNodes":
      if (nodesWith(change.value, state).length > 0) return;
      throw new CoordinatorError(
        "NOT_FOUND",
        `${path}.lose_nodes: no node has the label ${change.value.key}=${change.value.value}; ${HOW_TO_LIST}`,
      );
    case "loseAnyNode":
      if (change.value) return;
      throw new CoordinatorError("INVALID", `${path}.lose_any_node: it must be true`);
    case "addNodes": {
      const { count, like } = change.value;
      if (count < 1 || count > MAX_ADDED)
        throw new CoordinatorError("INVALID", `${path}.add_nodes.count: must be from 1 to ${MAX_ADDED}`);
      if (nodeAt(like, `${path}.add_nodes.like`, state).report !== undefined) return;
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        `${path}.add_nodes.like: node ${like} has not reported its capacity`,
      );
    }
    case "scale":
      scaled(change.value, `${path}.scale`, state);
      return;
    case "drainNode":
      nodeAt(change.value, `${path}.drain_node`, state);
      return;
    default:
      change satisfies never;
  }
}

/** Returns the names of the nodes that are supposed to be lost. */
export function lostNodes(suppositions: readonly Supposition[], state: ClusterView): ReadonlySet<string> {
  const lost = new Set<string>();
  for (const { supposition: change } of suppositions) {
    if (change?.$case === "loseNode") lost.add(change.value);
    if (change?.$case === "loseNodes") for (const { name } of nodesWith(change.value, state)) lost.add(name);
  }
  return lost;
}

/** Returns the number of nodes, and how many of them are lost with the suppositions. */
export function fleetHealthWith(lost: ReadonlySet<string>, state: ClusterView): FleetHealth {
  const nodes = state.nodes();
  return {
    nodes: nodes.length,
    lost: nodes.filter(({ name, health }) => !health.ready || lost.has(name)).length,
  };
}

export interface SupposeOptions {
  readonly sandbox: Sandbox;
  readonly lost: ReadonlySet<string>;
  readonly apply: Omit<ApplyOptions, "store" | "state" | "clock">;
}

/** Applies the suppositions to the copy, before its controllers start. */
export async function suppose(
  suppositions: readonly Supposition[],
  { sandbox, lost, apply }: SupposeOptions,
): Promise<void> {
  const { state, clock } = sandbox;
  for (const { supposition: change } of suppositions) {
    if (change?.$case === "addNodes") await addNodes(change.value, sandbox);
    else if (change?.$case === "drainNode") await drain(change.value, sandbox);
    else if (change?.$case === "scale") {
      const request = scaled(change.value, "scale", state);
      await applyResources(request, { ...apply, store: sandbox.store, state, clock, keepOthers: true });
    }
  }
  const nowMs = clock.nowMs();
  const kept = disruptionOf(fleetHealthWith(lost, state)) !== "none";
  for (const name of lost) {
    const message = "it is supposed to be lost";
    state.setNodeHealth(name, { ready: false, message, kept, sinceMs: nowMs, lastSeenMs: nowMs }, true);
  }
}

function nodeAt(name: string, path: string, state: ClusterView): NodeEntry {
  const node = state.node(name);
  if (node !== undefined) return node;
  throw new CoordinatorError("NOT_FOUND", `${path}: there is no node "${name}"; ${HOW_TO_LIST}`);
}

function nodesWith(label: { readonly key: string; readonly value: string }, state: ClusterView): NodeEntry[] {
  const key = SHORT_LABELS[label.key] ?? label.key;
  return state.nodes().filter((node) => labelOf(node, key) === label.value);
}

async function addNodes(
  { count, like }: { readonly count: number; readonly like: string },
  { state, store, clock }: Sandbox,
): Promise<void> {
  const model = nodeAt(like, "add_nodes.like", state);
  const nowMs = clock.nowMs();
  for (const name of namesLike(like, count, (it) => state.node(it) !== undefined)) {
    const { compares, ops } = nodeLike(model, name, nowMs);
    await state.reached((await store.txn(compares, ops)).revision);
    state.setNodeHealth(name, { ready: true, message: "", sinceMs: nowMs, lastSeenMs: nowMs }, true);
  }
}

async function drain(name: string, { state, store, clock }: Sandbox): Promise<void> {
  const node = nodeAt(name, "drain_node", state);
  const order = DrainRecord.fromPartial({ startedAt: toTimestamp(clock.nowMs()) });
  const write: StoreWrite = rewriteNode(node, { ...node.record, unschedulable: true, drain: order });
  await state.reached((await store.txn(write.compares, write.ops)).revision);
}

/**
 * Returns the apply that sets the number of replicas. Throws with the path if the number can't be
 * set.
 */
function scaled(
  wish: { readonly namespace: string; readonly name: string; readonly replicas: number },
  path: string,
  state: ClusterView,
): ApplyResourcesRequest {
  const { namespace, name, replicas } = wish;
  const entry = state.resource(resourceKey(namespace, "container_service", name));
  const spec = entry?.record.resource?.spec;
  if (entry === undefined || entry.record.deleting || spec?.$case !== "containerService")
    throw new CoordinatorError(
      "NOT_FOUND",
      `${path}: there is no container service "${name}" in namespace "${namespace}"`,
    );
  if (replicas > MAX_REPLICAS)
    throw new CoordinatorError("INVALID", `${path}.replicas: must be at most ${MAX_REPLICAS}`);
  if (spec.value.scaling?.autoscaling !== undefined)
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `${path}.replicas: the autoscaler sets the replicas of ${namespace}/${name}`,
    );
  const value = { ...spec.value, scaling: { replicas, autoscaling: undefined } };
  const resource: ForageResource = { name, spec: { $case: "containerService", value } };
  return ApplyResourcesRequest.fromPartial({
    applyId: `what-if-${name}`,
    namespace,
    labels: entry.record.labels,
    resources: [resource],
  });
}
