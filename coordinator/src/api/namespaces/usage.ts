import { PodRecord, type ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { podRequests, SchedulerError } from "@forage/scheduler";
import { workloadStatusKey } from "../../model/keys.ts";
import { podSpecOf } from "../../model/pod-spec.ts";
import { MAX_REPLICAS } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { podOf } from "./pod-parts.ts";

export const QUOTA_RESOURCES = ["pods", "cpu", "memory", "objects", "bytes"] as const;
export type QuotaResource = (typeof QUOTA_RESOURCES)[number];

/** `cpu` in thousandths of a core, `memory` and `bytes` in bytes. */
export type Amounts = Readonly<Record<QuotaResource, number>>;

export const NOTHING: Amounts = { pods: 0, cpu: 0, memory: 0, objects: 0, bytes: 0 };

export function plus(a: Amounts, b: Amounts, sign: 1 | -1 = 1): Amounts {
  const sum = (name: QuotaResource): number => a[name] + sign * b[name];
  return {
    pods: sum("pods"),
    cpu: sum("cpu"),
    memory: sum("memory"),
    objects: sum("objects"),
    bytes: sum("bytes"),
  };
}

/** Counts what namespaces use: what their resources ask for, not what runs at the moment. */
export class Usage {
  readonly #state: ClusterView;
  /** Records are immutable, so the cost of each is computed once. */
  readonly #costs = new WeakMap<ResourceRecord, Amounts>();
  readonly #podCosts = new WeakMap<PodRecord, Amounts>();
  readonly #foreignKinds: ReadonlySet<string>;

  /** `foreignKinds`: kinds of workloads that have pods and no resource. Each of their pods counts by itself. */
  constructor(state: ClusterView, foreignKinds: readonly string[] = []) {
    this.#state = state;
    this.#foreignKinds = new Set(foreignKinds);
  }

  ofNamespace(namespace: string): Amounts {
    let total = NOTHING;
    for (const { record } of this.#state.resources(namespace)) total = plus(total, this.of(record));
    for (const { record } of this.#state.objects.list({ namespace }))
      total = plus(total, { ...NOTHING, objects: 1, bytes: sizeOf(record.sizes) });
    return plus(total, this.#foreignPods(namespace));
  }

  /** Returns the usage of all namespaces together. */
  total(): Amounts {
    let total = NOTHING;
    for (const { record } of this.#state.resources()) total = plus(total, this.of(record));
    return plus(total, this.#foreignPods());
  }

  /** A job that has ended makes no more pods. */
  of(record: ResourceRecord): Amounts {
    const cost = this.#costs.get(record) ?? this.#work(record);
    return record.kind === "job" && this.#hasEnded(record) ? { ...cost, pods: 0, cpu: 0, memory: 0 } : cost;
  }

  #foreignPods(namespace?: string): Amounts {
    if (this.#foreignKinds.size === 0) return NOTHING;
    let total = NOTHING;
    for (const { record } of this.#state.pods(namespace))
      if (this.#foreignKinds.has(record.workloadKind)) total = plus(total, this.#ofPod(record));
    return total;
  }

  #ofPod(record: PodRecord): Amounts {
    const known = this.#podCosts.get(record);
    if (known !== undefined) return known;
    const each = requestsOfPod(record);
    const cost = { ...NOTHING, pods: 1, cpu: each.get("cpu") ?? 0, memory: each.get("memory") ?? 0 };
    this.#podCosts.set(record, cost);
    return cost;
  }

  #work(record: ResourceRecord): Amounts {
    const cost = record.resource === undefined ? NOTHING : costOf(record.resource);
    this.#costs.set(record, cost);
    return cost;
  }

  #hasEnded({ namespace, kind, name }: ResourceRecord): boolean {
    const status = this.#state.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record.status;
    return status?.$case === "job" && status.value.finishedAt !== undefined;
  }
}

/** Returns the largest usage of one resource. Pure. */
export function costOf(resource: ForageResource): Amounts {
  // The number of pods is capped, whatever a record of an earlier version specifies.
  const pods = Math.min(MAX_REPLICAS, podsOf(resource));
  const bytes = ForageResource.encode(resource).finish().byteLength;
  const each = pods === 0 ? new Map<string, number>() : requestsOf(resource);
  return {
    pods,
    cpu: pods * (each.get("cpu") ?? 0),
    memory: pods * (each.get("memory") ?? 0),
    objects: 1,
    bytes,
  };
}

/** A cron job counts as one run; runs that go on are jobs and count themselves. */
function podsOf({ spec }: ForageResource): number {
  switch (spec?.$case) {
    case "containerService": {
      const { scaling } = spec.value;
      return Math.max(scaling?.replicas ?? 1, scaling?.autoscaling?.maxReplicas ?? 0);
    }
    case "job":
    case "cronJob": {
      const { parallelism = 0, completions = 0 } = spec.value.jobConfig ?? {};
      return Math.min(parallelism || 1, completions || Number.POSITIVE_INFINITY);
    }
    default:
      return 0;
  }
}

function requestsOf(resource: ForageResource): ReadonlyMap<string, number> {
  const placed = podOf(resource, new Field(new Findings()));
  if (placed === undefined) return new Map();
  const { container, sidecars = [], initContainers = [] } = placed.pod;
  const template = { container, sidecars: [...sidecars], initContainers: [...initContainers] };
  return requestsOfPod(PodRecord.fromPartial({ template } as object));
}

function requestsOfPod(record: PodRecord): ReadonlyMap<string, number> {
  try {
    return podRequests(podSpecOf(record));
  } catch (error) {
    // Records of an earlier version may ask for more than can be summed up; such pods are never placed.
    if (error instanceof SchedulerError) return new Map();
    throw error;
  }
}

export function sizeOf(sizes: Readonly<Record<string, bigint | number>>): number {
  return Object.values(sizes).reduce<number>((sum, size) => sum + Number(size), 0);
}
