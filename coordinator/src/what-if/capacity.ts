import type { CapacityRequest, CapacityResponse } from "@forage/proto/forage/operator/v1/operator";
import { PodRecord } from "@forage/proto/forage/store/v1/store";
import {
  type Explanation,
  type PodSpec,
  type Profile,
  parseAmount,
  podRequests,
  SchedulerError,
} from "@forage/scheduler";
import { CoordinatorError } from "../errors.ts";
import { resourceKey } from "../model/keys.ts";
import { podSpecOf } from "../model/pod-spec.ts";
import { type Workload, workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { openFleetCopy } from "./fleet-copy.ts";
import { amountText, type NodeUse, useOf } from "./node-use.ts";

export interface CapacityOptions {
  readonly state: ClusterView;
  readonly profile: Profile;
  /** Waits until other pending work has run. */
  readonly turn: () => Promise<void>;
}

/** The number of pods at which counting ends. */
const MAX_PODS = 100_000;
const PLACED_AT_ONCE = 500;
const MAX_RESOURCES = 32;
/**
 * The prefix of names of counted pods. Real pods do not have it, because their names are DNS
 * labels.
 */
const PREFIX = "capacity_";

/** Returns how many more pods of one shape fit. Throws INVALID or NOT_FOUND. */
export async function capacityOf(
  request: CapacityRequest,
  options: CapacityOptions,
): Promise<CapacityResponse> {
  const { state, profile, turn } = options;
  const spec = shapeOf(request, state);
  const requests = new Map([...podRequests(spec), ["pods", 1]]);
  const copy = openFleetCopy(state, profile);
  try {
    const freeOn = freeRoom(state);
    const first = copy.fleet.explain(spec);
    const found = new Map<string, number>();
    let pods = 0;
    for (let isFull = false; !isFull && pods < MAX_PODS; ) {
      const names = Array.from({ length: PLACED_AT_ONCE }, (_, index) => `${PREFIX}${pods + index}`);
      for (const node of copy.fleet.placeBatch(spec, names)) {
        if (node === undefined) isFull = true;
        else found.set(node, (found.get(node) ?? 0) + 1);
        pods += node === undefined ? 0 : 1;
      }
      await turn();
    }
    const last = copy.fleet.explain(spec);
    const more = pods >= MAX_PODS;
    return {
      pods: BigInt(pods),
      more,
      nodes: [...found]
        .map(([node, count]) => ({ node, pods: count }))
        .sort((a, b) => b.pods - a.pods || (a.node < b.node ? -1 : 1)),
      podsIfPooled: BigInt(pooled(first, requests, freeOn)),
      runsOutFirst: more ? "" : firstShortage(last, requests, found, freeOn),
      why: more ? "" : last.summary,
      requests: Object.fromEntries([...requests].map(([name, amount]) => [name, amountText(name, amount)])),
    };
  } finally {
    copy.close();
  }
}

function shapeOf({ shape }: CapacityRequest, state: ClusterView): PodSpec {
  if (shape?.$case === "like") {
    const { namespace, kind, name } = shape.value;
    const [pod] = state.podsOfWorkload(workloadKey(namespace, kind, name));
    if (pod !== undefined) return { ...podSpecOf(pod.record), name: `${PREFIX}shape` };
    const { workload } = state.resource(resourceKey(namespace, kind, name)) ?? {};
    if (workload !== undefined) return shapeOfTemplate(workload);
    throw new CoordinatorError(
      "NOT_FOUND",
      `like: ${kind} "${name}" has no pods and no template in namespace "${namespace}"`,
    );
  }
  const amounts = Object.entries(shape?.value.amounts ?? {});
  if (amounts.length === 0)
    throw new CoordinatorError("INVALID", "requests: at least one resource is needed, such as cpu");
  if (amounts.length > MAX_RESOURCES)
    throw new CoordinatorError("INVALID", `requests: at most ${MAX_RESOURCES} resources`);
  for (const [resource, text] of amounts) assertAmount(resource, text);
  return {
    namespace: "",
    name: `${PREFIX}shape`,
    containers: [{ requests: Object.fromEntries(amounts) }],
  };
}

/**
 * Returns the pod of a workload's template, for a workload without pods. Claims do not bind such
 * pods to a node yet.
 */
function shapeOfTemplate({ namespace, kind, name, labels, template, templateHash }: Workload): PodSpec {
  const owner = { workloadKind: kind, workloadName: name };
  const record = {
    namespace,
    name: `${PREFIX}shape`,
    labels: { ...labels },
    template,
    templateHash,
    ...owner,
  };
  return podSpecOf(PodRecord.fromPartial(record));
}

function assertAmount(resource: string, text: string): void {
  try {
    parseAmount(resource, text);
  } catch (error) {
    if (!(error instanceof SchedulerError)) throw error;
    throw new CoordinatorError("INVALID", `requests[${resource}]: ${error.message}`, { cause: error });
  }
}

/**
 * Returns how many pods would fit if the free amounts of all nodes that lack only space were on one
 * node.
 */
function pooled(explanation: Explanation, requests: ReadonlyMap<string, number>, freeOn: FreeRoom): number {
  const roomy = explanation.rejections.filter(({ filter }) => filter === "NodeResourcesFit");
  const free = new Map<string, number>();
  for (const name of [...explanation.feasible, ...roomy.map(({ node }) => node)])
    for (const resource of requests.keys())
      free.set(resource, (free.get(resource) ?? 0) + Math.max(0, freeOn(name, resource)));
  const counts = [...requests].filter(([, amount]) => amount > 0);
  const pods = counts.map(([resource, amount]) => Math.floor((free.get(resource) ?? 0) / amount));
  return Math.min(MAX_PODS, ...pods);
}

/** Returns the resource that most nodes lack for one more pod after the counted ones. */
function firstShortage(
  explanation: Explanation,
  requests: ReadonlyMap<string, number>,
  placed: ReadonlyMap<string, number>,
  freeOn: FreeRoom,
): string {
  const short = new Map<string, number>();
  for (const { node, filter } of explanation.rejections) {
    if (filter !== "NodeResourcesFit") continue;
    for (const [resource, amount] of requests) {
      const free = freeOn(node, resource) - amount * (placed.get(node) ?? 0);
      if (free < amount) short.set(resource, (short.get(resource) ?? 0) + 1);
    }
  }
  return [...short].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
}

/**
 * Returns the free amount of a resource on a node: its allocatable amount minus the requests of its
 * pods.
 */
type FreeRoom = (node: string, resource: string) => number;

/** Returns a function that computes the free amounts of each node once. */
function freeRoom(state: ClusterView): FreeRoom {
  const uses = new Map<string, NodeUse>();
  return (name, resource) => {
    const node = state.node(name);
    if (node === undefined) return 0;
    const use = uses.get(name) ?? useOf(node, state);
    uses.set(name, use);
    return (use.allocatable.get(resource) ?? 0) - (use.requested.get(resource) ?? 0);
  };
}
