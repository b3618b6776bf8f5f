import { isDeepStrictEqual } from "node:util";
import { type Fleet, podKey as fleetKey, type NodeSpec, type PodSpec, type Taint } from "@forage/scheduler";
import type { ObjectFaults } from "../../faults/object-faults.ts";
import { taintsFrom } from "../../model/pod-rules.ts";
import { PodSpecs } from "../../model/pod-spec.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, NodeEntry, PodEntry } from "../../state/entries.ts";
import { labelsOf } from "../../state/node-labels.ts";
import { conditionTaints } from "../../state/node-taints.ts";
import { usesNothing } from "../job/pod-state.ts";
import { byBinding } from "./order.ts";

export interface FleetViewOptions {
  readonly state: ClusterView;
  readonly fleet: Fleet;
  readonly faults: ObjectFaults;
}

/** Keeps the scheduler's fleet in sync with the nodes and bound pods of the cluster view. */
export class FleetView {
  readonly #options: FleetViewOptions;
  readonly #specs = new PodSpecs();

  constructor(options: FleetViewOptions) {
    const { state } = options;
    this.#options = options;
    for (const node of state.nodes()) this.#describe(node);
    // Pods are added in the order in which they were bound, so that a restarted coordinator makes the same choices.
    for (const pod of state.pods().sort(byBinding)) this.#setPod(pod);
  }

  /** Applies the change. Returns whether it changed the fleet. */
  follow(change: Change): boolean {
    if (change.type === "node") return this.#setNode(change.before, change.after);
    if (change.type !== "pod") return false;
    const { before, after } = change;
    if (after !== undefined) return this.#followPod(before, after);
    if (before === undefined) return false;
    const pod = subjectOf(before);
    this.#options.faults.clear(pod);
    return this.#options.fleet.unbind(fleetKey(before.record));
  }

  /** Runs the function while the fleet treats the node as unreachable with its pods still on it, and undoes that. */
  whileLost<T>(node: NodeEntry, nowMs: number, run: () => T): T {
    this.#describe({ ...node, health: { ...node.health, ready: false, sinceMs: nowMs } });
    try {
      return run();
    } finally {
      this.#describe(node);
    }
  }

  #followPod(before: PodEntry | undefined, after: PodEntry): boolean {
    const { fleet } = this.#options;
    const { node } = after.record;
    // The only relevant change of a status is the end of a job's pod, which then uses no resources.
    if (before?.record === after.record && usesNothing(before) === usesNothing(after)) return false;
    if (node === "")
      return before !== undefined && before.record.node !== "" && fleet.unbind(fleetKey(after.record));
    return this.#setPod(after);
  }

  #setNode(before: NodeEntry | undefined, after: NodeEntry | undefined): boolean {
    const { fleet, state, faults } = this.#options;
    if (after === undefined) {
      if (before === undefined) return false;
      faults.clear(nodeSubject(before));
      fleet.removeNode(before.name);
      return true;
    }
    // Heartbeats change a node's entry often, but placement depends on few of its fields.
    if (before !== undefined && !mayDiffer(before, after)) return false;
    if (before !== undefined && isDeepStrictEqual(nodeSpecOf(before), nodeSpecOf(after))) return false;
    this.#describe(after);
    if (before === undefined)
      for (const pod of state.podsOnNode(after.name).sort(byBinding)) this.#setPod(pod);
    return true;
  }

  #describe(node: NodeEntry): void {
    const { fleet, faults } = this.#options;
    const spec = nodeSpecOf(node);
    const subject = nodeSubject(node);
    try {
      const left = fleet.setNode(spec);
      if (left.length === 0) faults.clear(subject);
      else faults.report(subject, new Error(tooManyResources(left)));
    } catch (error) {
      // A node with invalid amounts gets no pods. Other nodes are not affected.
      faults.report(subject, error);
      fleet.setNode({ ...spec, allocatable: {} });
    }
  }

  #setPod(pod: PodEntry): boolean {
    const { fleet, state, faults } = this.#options;
    const name = fleetKey(pod.record);
    const { node } = pod.record;
    const bound = fleet.nodeOf(name);
    if (node === "") return false;
    if (usesNothing(pod) || state.node(node) === undefined) return fleet.unbind(name);
    if (bound !== undefined && bound !== node) fleet.unbind(name);
    const set = (spec: PodSpec): void => {
      if (bound === node) fleet.update(spec);
      else fleet.bind(spec, node);
    };
    try {
      set(this.#specs.of(pod.record));
    } catch (error) {
      faults.report(subjectOf(pod), error);
      // The pod is bound, so it counts as one pod on its node, with unknown requests.
      set({ namespace: pod.record.namespace, name: pod.record.name, containers: [] });
    }
    fleet.setTerminating(name, isLeaving(pod));
    return true;
  }
}

export function subjectOf({ record }: PodEntry): { kind: "pod"; namespace: string; name: string } {
  return { kind: "pod", namespace: record.namespace, name: record.name };
}

function nodeSubject({ name }: NodeEntry): { kind: "node"; namespace: ""; name: string } {
  return { kind: "node", namespace: "", name };
}

/** The largest number of names in a message. */
const MAX_NAMED = 3;

function tooManyResources(left: readonly string[]): string {
  const named = left.slice(0, MAX_NAMED).join(", ");
  const more = left.length > MAX_NAMED ? ` and ${left.length - MAX_NAMED} more` : "";
  return `it offers more extended resources than the limit; ignored: ${named}${more}`;
}

function isLeaving(pod: PodEntry): boolean {
  return pod.record.stoppingSince !== undefined || pod.record.drainingSince !== undefined;
}

function mayDiffer(a: NodeEntry, b: NodeEntry): boolean {
  return a.health.ready !== b.health.ready || a.report !== b.report || a.record !== b.record;
}

function nodeSpecOf(node: NodeEntry): NodeSpec {
  const report = node.report?.report;
  return {
    name: node.name,
    labels: labelsOf(node),
    allocatable: report?.allocatable ?? {},
    runtimeClasses: report?.runtimeClasses ?? [],
    unschedulable: node.record.unschedulable,
    taints: taintsOf(node),
  };
}

/** Returns the operators' taints, and one taint for each of the node's conditions that requires one. */
function taintsOf(node: NodeEntry): Taint[] {
  const called = conditionTaints(node).filter(({ effect }) => effect === "NoSchedule");
  return [...taintsFrom(node.record.taints), ...taintsFrom(called)];
}
