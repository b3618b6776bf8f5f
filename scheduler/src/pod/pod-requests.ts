import { formatQuantity } from "../quantity/format-quantity.ts";
import { amountOf, NANO_PER_UNIT, parseQuantity, plainAmountOf } from "../quantity/parse-quantity.ts";
import { SchedulerError } from "../scheduler-error.ts";
import type { ContainerSpec, PodSpec, ResourceList } from "../types.ts";

type Nano = Map<string, bigint>;

// The usage that kube-scheduler assumes for a container without requests. Scores use it, filters don't.
const SCORING_DEFAULTS: ResourceList = { cpu: "100m", memory: "200Mi" };

/** The largest amount that the scheduler supports, in its own units. */
const EXACT_MAX = BigInt(Number.MAX_SAFE_INTEGER);

/** A pod's total by resource, in the scheduler's units: thousandths for cpu, else whole units. */
export type Amounts = ReadonlyMap<string, number>;

/**
 * Returns the pod's peak requests: the sum over containers and sidecars, or the peak during its start, whichever is
 * larger. The sum is exact and rounded up once at the end. @throws SchedulerError for an invalid quantity; `field`
 * names it.
 */
export function podRequests(pod: PodSpec): Amounts {
  return plainTotalOf(pod) ?? totalOf(pod, undefined);
}

/**
 * Like `podRequests`, but assumes 100m cpu and 200Mi memory for each container without such a request, as
 * kube-scheduler does for scores.
 */
export function defaultedRequests(pod: PodSpec): Amounts {
  const every = [...pod.containers, ...(pod.initContainers ?? [])];
  const named = every.every(({ requests }) => requests?.cpu !== undefined && requests.memory !== undefined);
  return named ? podRequests(pod) : totalOf(pod, SCORING_DEFAULTS);
}

/**
 * Returns the sum in plain numbers, for pods with plain quantities and without init containers, which are nearly all.
 */
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
  for (const amount of total.values()) if (amount > Number.MAX_SAFE_INTEGER) return undefined;
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
    [...running].map(([resource, nano]) => {
      // An assumed usage must not make a pod invalid whose requests can be added up.
      const max = EXACT_MAX * (resource === "cpu" ? NANO_PER_UNIT / 1000n : NANO_PER_UNIT);
      const counted = missing !== undefined && nano > max ? max : nano;
      return [resource, amountOf(resource, formatQuantity(counted))];
    }),
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
    // The caller reports the error with the field's name.
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
