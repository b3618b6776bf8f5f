import { hostPortsOf } from "../match/host-ports.ts";
import type { NamedResource, NodeTable } from "../state/node-table.ts";
import type { HostPort, PodSpec } from "../types.ts";
import { type Amounts, defaultedRequests, podRequests } from "./pod-requests.ts";

/** The resources that a pod needs on its node, in the scheduler's units. */
export interface Demand {
  readonly cpu: number;
  readonly memory: number;
  readonly storage: number;
  /** The extended resources, without zeros. */
  readonly extended: readonly { readonly resource: NamedResource; readonly amount: number }[];
  /** The usage that kube-scheduler's scores assume for containers without requests. */
  readonly defaultedCpu: number;
  readonly defaultedMemory: number;
  readonly ports: readonly HostPort[];
}

const NO_EXTENDED: Demand["extended"] = [];

/** Computes the demand of a pod. @throws SchedulerError `invalid_quantity`, `quantity_out_of_range`. */
export function demandOf(pod: PodSpec, table: NodeTable): Demand {
  const amounts = podRequests(pod);
  const defaulted = defaultedRequests(pod);
  return {
    cpu: amounts.get("cpu") ?? 0,
    memory: amounts.get("memory") ?? 0,
    storage: amounts.get("ephemeral-storage") ?? 0,
    extended: extendedOf(amounts, table),
    defaultedCpu: defaulted.get("cpu") ?? 0,
    defaultedMemory: defaulted.get("memory") ?? 0,
    ports: hostPortsOf(pod),
  };
}

/** Adds (sign 1) or subtracts (sign -1) the pod's demand. */
export function addDemand(table: NodeTable, node: number, demand: Demand, sign: 1 | -1): void {
  const { cpu, memory, storage } = table;
  cpu.free[node] = (cpu.free[node] ?? 0) - sign * demand.cpu;
  memory.free[node] = (memory.free[node] ?? 0) - sign * demand.memory;
  if (demand.storage > 0) storage.free[node] = (storage.free[node] ?? 0) - sign * demand.storage;
  for (const { resource, amount } of demand.extended) {
    const free = table.columns[resource.column]?.free;
    if (free !== undefined) free[node] = (free[node] ?? 0) - sign * amount;
  }
  table.podsFree[node] = (table.podsFree[node] ?? 0) - sign;
  table.defaultedCpu[node] = (table.defaultedCpu[node] ?? 0) + sign * demand.defaultedCpu;
  table.defaultedMemory[node] = (table.defaultedMemory[node] ?? 0) + sign * demand.defaultedMemory;
  table.refile(node);
  if (demand.ports.length > 0) countPorts(table, node, demand.ports, sign);
}

function countPorts(table: NodeTable, node: number, ports: readonly HostPort[], sign: 1 | -1): void {
  const taken = table.ports.get(node) ?? [];
  if (sign === 1) {
    taken.push(...ports);
  } else {
    for (const port of ports) taken.splice(taken.indexOf(port), 1);
  }
  if (taken.length > 0) table.ports.set(node, taken);
  else table.ports.delete(node);
}

function extendedOf(amounts: Amounts, table: NodeTable): Demand["extended"] {
  let extended: { resource: NamedResource; amount: number }[] | undefined;
  for (const [name, amount] of amounts) {
    if (amount === 0 || name === "cpu" || name === "memory" || name === "ephemeral-storage") continue;
    extended ??= [];
    extended.push({ resource: table.named(name), amount });
  }
  return extended ?? NO_EXTENDED;
}
