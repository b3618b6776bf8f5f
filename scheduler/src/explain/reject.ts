import { conflictingPort, formatPort } from "../match/host-ports.ts";
import { compileNodeDemand, mismatchOf, type NodeTest, namedNodes } from "../match/node-selector.ts";
import { formatTaint, repellingTaint, toleratesUnschedulable } from "../match/taints.ts";
import { hasPartners, skewOf, spreads } from "../place/admit.ts";
import type { LiveRules } from "../place/live-rules.ts";
import { runs } from "../pod/pod-rules.ts";
import { formatAmount } from "../quantity/format-quantity.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { FilterName, NodeRejection, NodeSpec, PodSpec } from "../types.ts";

/** A rejection, with the short resources if these are the reason. */
export interface Rejection extends NodeRejection {
  readonly shortages?: readonly Shortage[];
}

export interface Shortage {
  readonly resource: string;
  readonly needs: number;
  readonly free: number;
}

/** The first columns of every fleet, in this order. */
const PLAIN_COLUMNS = ["cpu", "memory", "ephemeral-storage"];

/** Finds, for each node, the first filter that rejects a class, in kube-scheduler's order. */
export class Rejecter {
  readonly #state: FleetState;
  readonly #live: LiveRules;
  readonly #spec: PodSpec;
  readonly #names: ReadonlySet<string> | undefined;
  readonly #demand: NodeTest | undefined;
  readonly #anywhere: boolean;

  constructor(state: FleetState, live: LiveRules) {
    this.#state = state;
    this.#live = live;
    this.#spec = live.podClass.rules.spec;
    this.#names = namedNodes(this.#spec);
    this.#demand = compileNodeDemand(this.#spec);
    this.#anywhere = toleratesUnschedulable(this.#spec.tolerations);
  }

  reject(node: number): Rejection | undefined {
    const spec = this.#state.nodes.spec(node);
    return this.#rejectBySpec(spec) ?? this.#rejectByUse(node, spec) ?? this.#rejectByPods(node, spec);
  }

  #rejectBySpec(spec: NodeSpec): Rejection | undefined {
    if (this.#names !== undefined && !this.#names.has(spec.name))
      return never(spec, "NodeName", "not among the nodes named");
    if (spec.unschedulable && !this.#anywhere) return never(spec, "NodeUnschedulable", "unschedulable");
    const taint = repellingTaint(this.#spec.tolerations, spec);
    if (taint !== undefined) return never(spec, "TaintToleration", `taint ${formatTaint(taint)}`);
    if (this.#demand !== undefined && !this.#demand(spec)) {
      const { reason, detail } = mismatchOf(this.#spec, spec) ?? {
        reason: "node selector or affinity doesn't match",
        detail: "",
      };
      return never(spec, "NodeAffinity", reason, detail);
    }
    return undefined;
  }

  #rejectByUse(node: number, spec: NodeSpec): Rejection | undefined {
    const { nodes } = this.#state;
    const { demand } = this.#live.podClass;
    const port =
      demand.ports.length > 0 ? conflictingPort(demand.ports, nodes.ports.get(node) ?? []) : undefined;
    if (port !== undefined) return helped(spec, "NodePorts", `host port ${formatPort(port)} taken`);
    const shortages = shortagesOn(this.#state, this.#live, node);
    if (shortages.length > 0) return this.#rejectForShortage(node, spec, shortages);
    const claims = this.#spec.claimNodes ?? [];
    if (!claims.every((name) => name === spec.name)) {
      return never(spec, "VolumeBinding", `volume claims are on ${[...new Set(claims)].join(", ")}`);
    }
    const { runtimeClass } = this.#spec;
    if (!runs(spec, runtimeClass))
      return never(spec, "RuntimeClass", `runtime class ${runtimeClass} not offered`);
    return undefined;
  }

  #rejectForShortage(node: number, spec: NodeSpec, shortages: readonly Shortage[]): Rejection | undefined {
    const [shortage] = shortages;
    if (shortage === undefined) return undefined;
    const impossible = shortages.some(
      (s) => s.resource !== "pods" && s.needs > this.#capacity(s.resource, node),
    );
    const many = shortages.length > 1;
    const reason = many
      ? shortages.map((s) => `insufficient ${s.resource}`).join(", ")
      : `insufficient ${shortage.resource}`;
    const shown = many ? shortages.map(describe).join("; ") : describe(shortage);
    const message = `${reason} (${shown})`;
    return {
      node: spec.name,
      filter: "NodeResourcesFit",
      message,
      reason,
      resolvable: !impossible,
      shortages,
    };
  }

  #capacity(resource: string, node: number): number {
    const { nodes } = this.#state;
    const column = PLAIN_COLUMNS.indexOf(resource);
    return nodes.columns[column < 0 ? nodes.named(resource).column : column]?.allocatable[node] ?? 0;
  }

  #rejectByPods(node: number, spec: NodeSpec): Rejection | undefined {
    const live = this.#live;
    for (const rule of live.hard) {
      const { key } = rule.topology;
      const domain = rule.topology.domain[node] ?? -1;
      if (domain < 0) return never(spec, "PodTopologySpread", `no label ${key} to spread by`);
      if (spreads(rule, node)) continue;
      const shown = `skew ${skewOf(rule, domain)} in ${rule.topology.values[domain]}, at most ${rule.maxSkew}`;
      return helped(spec, "PodTopologySpread", `too many replicas by ${key}`, shown);
    }
    if (live.affinity.length > 0 && !hasPartners(live, node)) {
      return never(spec, "InterPodAffinity", "no pod that matches the affinity");
    }
    const own = live.podClass.rules.antiAffinity.length;
    for (const [index, counter] of live.repelling.entries()) {
      const domain = counter.set.topology.domain[node] ?? -1;
      if (domain < 0 || (counter.counts[domain] ?? 0) === 0) continue;
      const { key } = counter.set.topology;
      const reason = index < own ? `anti-affinity by ${key}` : `another pod's anti-affinity by ${key}`;
      return helped(
        spec,
        "InterPodAffinity",
        reason,
        `${counter.counts[domain]} in ${counter.set.topology.values[domain]}`,
      );
    }
    return undefined;
  }
}

/** Returns the resources of which the node has too little for the class. */
export function shortagesOn(state: FleetState, { podClass }: LiveRules, node: number): Shortage[] {
  const { nodes } = state;
  const { demand } = podClass;
  const shortages: Shortage[] = [];
  const check = (resource: string, column: number, needs: number) => {
    const free = nodes.columns[column]?.free[node] ?? 0;
    if (needs > 0 && needs > free) shortages.push({ resource, needs, free });
  };
  if ((nodes.podsFree[node] ?? 0) < 1)
    shortages.push({ resource: "pods", needs: 1, free: nodes.podsFree[node] ?? 0 });
  check("cpu", 0, demand.cpu);
  check("memory", 1, demand.memory);
  check("ephemeral-storage", 2, demand.storage);
  for (const { resource, amount } of demand.extended) check(resource.name, resource.column, amount);
  return shortages;
}

export function describe({ resource, needs, free }: Shortage): string {
  const unit = resource === "cpu" ? " cpu" : "";
  return `needs ${formatAmount(resource, needs)}${unit}, ${formatAmount(resource, Math.max(0, free))} free`;
}

function never(spec: NodeSpec, filter: FilterName, reason: string, detail = ""): Rejection {
  const message = detail === "" ? reason : `${reason} (${detail})`;
  return { node: spec.name, filter, message, reason, resolvable: false };
}

function helped(spec: NodeSpec, filter: FilterName, reason: string, detail?: string): Rejection {
  const message = detail === undefined ? reason : `${reason} (${detail})`;
  return { node: spec.name, filter, message, reason, resolvable: true };
}
