import { formatQuantity } from "../quantity/format-quantity.ts";
import { amountOf, parseQuantity, plainAmountOf } from "../quantity/parse-quantity.ts";
import { SchedulerError } from "../scheduler-error.ts";
import type { ContainerSpec, PodSpec, ResourceList } from "../types.ts";

type Nano = Map<string, bigint>;

// What kube-scheduler supposes a container uses when it requests nothing. For scores only, never for fit.
const SUPPOSED: ResourceList = { cpu: "100m", memory: "200Mi" };

/** A pod's total by resource, in the scheduler's units: thousandths for cpu, else whole units. */
export type Amounts = ReadonlyMap<string, number>;

/**
 * What the pod needs at its peak: its containers and sidecars together, or the most demanding moment of its start.
 * Summed exactly, rounded up once at the end.
 * @throws SchedulerError when a quantity can't be read; `field` names it.
 */
export function podRequests(pod: PodSpec): Amounts {
  return plainTotalOf(pod) ?? totalOf(pod, undefined);
}

/** The same, supposing 100m cpu and 200Mi memory for each container that names no such request: kube-scheduler scores with this. */
export function supposedRequests(pod: PodSpec): Amounts {
  const every = [...pod.containers, ...(pod.initContainers ?? [])];
  const named = every.every(({ requests }) => requests?.cpu !== undefined && requests.memory !== undefined);
  return named ? podRequests(pod) : totalOf(pod, SUPPOSED);
}

/** The sum in plain numbers, for pods without init containers and with plain quantities only: nearly all. */
function plainTotalOf(pod: PodSpec): Amounts | undefined {
  if (pod.initContainers?.length) return undefined;
  const total = new Map<string, number>();
  for (const { requests, limits } of pod.containers) {
    for (const resource in requests) {
      const amount = plainAmountOf(resource, requests[resource] ?? "");
      if (amount < 0) return undefined;
      total.set(resource, (total.get(resource) ?? 0) + amount);
    }
    for (const resource in limits) {
      if (requests?.[resource] !== undefined) continue;
      const amount = plainAmountOf(resource, limits[resource] ?? "");
      if (amount < 0) return undefined;
      total.set(resource, (total.get(resource) ?? 0) + amount);
    }
  }
  return total;
}

function totalOf(pod: PodSpec, missing: ResourceList | undefined): Amounts {
  const running: Nano = new Map();
  const sidecars: Nano = new Map();
  const startPeak: Nano = new Map();
  for (const [index, container] of pod.containers.entries()) {
    add(running, requestsOf(container, `containers[${index}]`, missing));
  }
  for (const [index, container] of (pod.initContainers ?? []).entries()) {
    const own = requestsOf(container, `initContainers[${index}]`, missing);
    if (container.restartPolicy === "Always") {
      add(running, own);
      add(sidecars, own);
      raise(startPeak, sidecars);
    } else {
      add(own, sidecars);
      raise(startPeak, own);
    }
  }
  raise(running, startPeak);
  return new Map(
    [...running].map(([resource, nano]) => [resource, amountOf(resource, formatQuantity(nano))]),
  );
}

function requestsOf(container: ContainerSpec, at: string, missing: ResourceList | undefined): Nano {
  const nano: Nano = new Map();
  for (const [from, list] of [
    ["requests", container.requests],
    ["limits", container.limits],
    [undefined, missing],
  ] as const) {
    for (const resource in list) {
      if (!nano.has(resource)) nano.set(resource, read(list[resource] ?? "", `${at}.${from}.${resource}`));
    }
  }
  return nano;
}

function read(text: string, field: string): bigint {
  try {
    const nano = parseQuantity(text);
    if (nano >= 0n) return nano;
  } catch {
    // Told below, with the field's name.
  }
  throw new SchedulerError(
    "invalid_quantity",
    `${field}: "${text}" is not a quantity of zero or more`,
    field,
  );
}

function add(total: Nano, more: Nano): void {
  for (const [resource, nano] of more) total.set(resource, (total.get(resource) ?? 0n) + nano);
}

function raise(total: Nano, least: Nano): void {
  for (const [resource, nano] of least) {
    if (nano > (total.get(resource) ?? 0n)) total.set(resource, nano);
  }
}
