import { conflictingPort } from "../match/host-ports.ts";
import type { Demand } from "../pod/demand.ts";
import type { NodeTable } from "../state/node-table.ts";
import type { LiveRules } from "./live-rules.ts";

/**
 * Reports whether resources and ports fit. A resource that the class doesn't request is not compared, because the node
 * may be overcommitted in it.
 */
export function fits(table: NodeTable, demand: Demand, node: number): boolean {
  if ((table.podsFree[node] ?? 0) <= 0) return false;
  const { cpu, memory, storage } = table;
  if (demand.cpu > 0 && demand.cpu > (cpu.free[node] ?? 0)) return false;
  if (demand.memory > 0 && demand.memory > (memory.free[node] ?? 0)) return false;
  if (demand.storage > 0 && demand.storage > (storage.free[node] ?? 0)) return false;
  for (const { resource, amount } of demand.extended) {
    if (amount > (table.columns[resource.column]?.free[node] ?? 0)) return false;
  }
  return demand.ports.length === 0 || !portsTaken(table, demand, node);
}

export function portsTaken(table: NodeTable, demand: Demand, node: number): boolean {
  const taken = table.ports.get(node);
  return taken !== undefined && conflictingPort(demand.ports, taken) !== undefined;
}

/**
 * Reports whether the node meets the rules about other pods: hard spread, required affinity, and anti-affinity in both
 * directions.
 */
export function admits(live: LiveRules, node: number): boolean {
  const { hard, affinity, repelling } = live;
  for (let i = 0; i < hard.length; i++) {
    const rule = hard[i];
    if (rule !== undefined && !spreads(rule, node)) return false;
  }
  if (affinity.length > 0 && !hasPartners(live, node)) return false;
  for (let i = 0; i < repelling.length; i++) {
    const counter = repelling[i];
    const domain = counter?.set.topology.domain[node] ?? -1;
    if (domain >= 0 && (counter?.counts[domain] ?? 0) > 0) return false;
  }
  return true;
}

export function hasRulesAboutPods(live: LiveRules): boolean {
  return live.hard.length > 0 || live.affinity.length > 0 || live.repelling.length > 0;
}

export function spreads(rule: LiveRules["hard"][number], node: number): boolean {
  const domain = rule.topology.domain[node] ?? -1;
  return domain >= 0 && skewOf(rule, domain) <= rule.maxSkew;
}

/** Returns the skew with the pod in the domain. */
export function skewOf({ counter, minDomains, self }: LiveRules["hard"][number], domain: number): number {
  const least = counter.set.count < minDomains ? 0 : counter.least;
  return (counter.counts[domain] ?? 0) + self - least;
}

/**
 * Reports whether the domain of each affinity term contains a matching pod, or no such pod exists and the pod matches
 * its own terms.
 */
export function hasPartners({ affinity, matchesItself }: LiveRules, node: number): boolean {
  let together = true;
  let anywhere = false;
  for (const counter of affinity) {
    const domain = counter.set.topology.domain[node] ?? -1;
    if (domain < 0) return false;
    if ((counter.counts[domain] ?? 0) === 0) together = false;
    if (counter.total > 0) anywhere = true;
  }
  return together || (!anywhere && matchesItself);
}
