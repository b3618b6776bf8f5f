import type { PodClass } from "../pod/pod-class.ts";
import type { NodeTable } from "../state/node-table.ts";

// Found by a search over random fleets and arrival orders (the reference page has the results), then rounded. They
// refer to free shares of cpu and memory, before and after the placement.
const IMBALANCE_RATIO = 0.045;
const IMBALANCE = 1.73;
const IMBALANCE_BEFORE = -1.256;
const ROOM = 0.294;
const ROOM_BEFORE = -0.663;
const SCARCER = 0.5;
const SCARCER_BEFORE = 0.05;

// Keeps the ratio finite for a full node.
const RATIO_FLOOR = 0.02;

// From this used share on, a node counts as fully in use. Pods that run on every node (agents, log shippers) therefore
// don't mark all nodes as in use.
const OPENED_SHARE = 0.1;

const OPENED = 50;
const FIT = 10;
// Devices are scarcer than other resources: a node where fewer devices remain beats one in use, and pods without device
// requests avoid nodes with devices.
const DEVICES_LEFT = 300;
const DEVICES_IDLE = 100;
const DEVICES_HALF = 4;

/**
 * Returns a score for how well a pod fills a node, about 0 to 100; higher is better. The first two arguments are the
 * node's free shares of cpu and memory, the others the shares that the pod needs.
 */
export function packFit(
  cpuShare: number,
  memoryShare: number,
  cpuRequested: number,
  memoryRequested: number,
): number {
  // Values below 0 mean that bound pods exceed the node. The node counts as full, and the pod requests nothing of this
  // resource.
  const cpuFree = Math.max(0, cpuShare);
  const memoryFree = Math.max(0, memoryShare);
  const cpu = cpuFree - cpuRequested;
  const memory = memoryFree - memoryRequested;
  const skew = Math.abs(cpu - memory);
  const skewBefore = Math.abs(cpuFree - memoryFree);
  // Computes the minimum without a branch: half the sum minus half the difference.
  const scarcer = 0.5 * (cpu + memory - skew);
  const scarcerBefore = 0.5 * (cpuFree + memoryFree - skewBefore);
  const cost =
    (IMBALANCE_RATIO * skew) / (cpu + memory + RATIO_FLOOR) +
    IMBALANCE * skew +
    IMBALANCE_BEFORE * skewBefore +
    ROOM * (cpu * cpu + memory * memory) +
    ROOM_BEFORE * (cpuFree * cpuFree + memoryFree * memoryFree) +
    SCARCER * scarcer +
    SCARCER_BEFORE * scarcerBefore;
  const used = 1 - scarcerBefore;
  return (used < OPENED_SHARE ? (OPENED * used) / OPENED_SHARE : OPENED) - FIT * cost;
}

/**
 * Returns an upper bound of `packFit` for nodes whose scarcer free share is from `least` to `most`, for a pod that
 * needs the share `taken` of it.
 */
export function packFitMost(least: number, most: number, taken: number): number {
  // The scarcer share is below `most` and the other at most 1; the pod can reduce the imbalance at most by what it
  // needs.
  const room = -ROOM_BEFORE * (most * most + 1);
  return OPENED * Math.min(1, (1 - least) / OPENED_SHARE) + FIT * (room - IMBALANCE_BEFORE * taken);
}

/** Returns the amount of the node's devices that the pod would waste. The score subtracts it. */
export function deviceWaste(table: NodeTable, { demand }: PodClass, node: number): number {
  let waste = 0;
  for (let column = table.firstExtended; column < table.columns.length; column++) {
    const devices = table.columns[column];
    const free = devices?.free[node] ?? 0;
    if (free <= 0) continue;
    const requested = demand.extended.find(({ resource }) => resource.column === column);
    if (requested === undefined) {
      waste += DEVICES_IDLE;
    } else {
      const left = free - requested.amount;
      waste += (DEVICES_LEFT * left) / (left + DEVICES_HALF);
    }
  }
  return waste;
}
