import { PodRecord, type ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { podRequests, SchedulerError } from "@forage/scheduler";
import { countedSurge } from "../../control/workload/update-limits.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import { podSpecOf } from "../../model/pod-spec.ts";
import { MAX_REPLICAS, workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { podOf } from "./pod-parts.ts";

export const QUOTA_RESOURCES = ["pods", "cpu", "memory", "objects", "bytes"] as const;
export type QuotaResource = (typeof QUOTA_RESOURCES)[number];

/** Amounts by resource. `cpu` is in thousandths of a core, `memory` and `bytes` in bytes. */
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

/** Computes the usage of namespaces from the requests of their resources, not from what runs. */
export class Usage {
  readonly #state: ClusterView;
  /** The cost of each record, which is computed once because records are immutable. */
  readonly #costs = new WeakMap<ResourceRecord, Amounts>();
  readonly #podCosts = new WeakMap<PodRecord, Amounts>();
  readonly #foreignKinds: ReadonlySet<string>;

  /** `foreignKinds` are the kinds of workloads that have pods but no resource. Their pods are counted one by one. */
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
    for (const { record } of this.#state.resources()) total = plus(total, this.#applied(record));
    return plus(total, this.#foreignPods());
  }

  /**
   * Returns the part of a namespace's usage that ends without another request: deleted resources with stopping pods, and
   * services whose pods request more than their applied content.
   */
  leaving(namespace: string): Amounts {
    let total = NOTHING;
    for (const { record } of this.#state.resources(namespace)) {
      const used = this.of(record);
      total = plus(total, record.deleting ? used : plus(used, this.#applied(record), -1));
    }
    return total;
  }

  of(record: ResourceRecord): Amounts {
    const applied = this.#applied(record);
    if (record.kind !== "container_service" || applied.pods === 0) return applied;
    // While a rollout is paused or rolled back, pods of another revision run.
    let [cpu, memory] = [applied.cpu, applied.memory];
    for (const pod of this.#state.podsOfWorkload(workloadKey(record.namespace, record.kind, record.name))) {
      if (pod.record.stoppingSince !== undefined) continue;
      const each = this.#ofPod(pod.record);
      cpu = Math.max(cpu, applied.pods * each.cpu);
      memory = Math.max(memory, applied.pods * each.memory);
    }
    return { ...applied, cpu, memory };
  }

  /** Returns the usage that another run of the cron job adds. The first run at a time is counted already. */
  ofRun(owner: ResourceRecord, run: ForageResource): Amounts {
    const cost = costOf(run);
    const [reserved, active] = [this.#cost(owner), this.#activeRuns(owner)];
    const added = (name: QuotaResource): number => Math.max(0, active[name] + cost[name] - reserved[name]);
    const before = (name: QuotaResource): number => Math.max(0, active[name] - reserved[name]);
    return {
      ...cost,
      pods: added("pods") - before("pods"),
      cpu: added("cpu") - before("cpu"),
      memory: added("memory") - before("memory"),
    };
  }

  /**
   * Returns the usage of a resource's applied content. A finished job uses nothing, and the runs of a cron job count
   * instead of the run that is counted for the cron job.
   */
  #applied(record: ResourceRecord): Amounts {
    const cost = this.#cost(record);
    if (record.kind === "job" && this.#hasEnded(record)) return { ...cost, pods: 0, cpu: 0, memory: 0 };
    return this.#withoutRuns(record, cost);
  }

  /** Returns the usage of the resource after it gets the new content. */
  withContent(record: ResourceRecord, content: ForageResource): Amounts {
    return this.#withoutRuns(record, costOf(content));
  }

  #withoutRuns(record: ResourceRecord, cost: Amounts): Amounts {
    if (record.kind !== "cron_job") return cost;
    const active = this.#activeRuns(record);
    const rest = (name: QuotaResource): number => Math.max(0, cost[name] - active[name]);
    return { ...cost, pods: rest("pods"), cpu: rest("cpu"), memory: rest("memory") };
  }

  #activeRuns({ namespace, kind, name }: ResourceRecord): Amounts {
    const runs = this.#state.resourcesOwnedBy(namespace, kind, name);
    return runs.reduce((sum, run) => plus(sum, this.#applied(run.record)), NOTHING);
  }

  #cost(record: ResourceRecord): Amounts {
    return this.#costs.get(record) ?? this.#work(record);
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

/** Returns the largest possible usage of one resource. Pure. */
export function costOf(resource: ForageResource): Amounts {
  // The number of pods is limited, because a record of an earlier version may specify more.
  const pods = Math.min(MAX_REPLICAS, podsOf(resource)) + surgeOf(resource);
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

/** Returns the number of pods that count only because of the service's `max_surge`. Pure. */
export function surgeOf(resource: ForageResource): number {
  if (resource.spec?.$case !== "containerService") return 0;
  const pods = Math.min(MAX_REPLICAS, podsOf(resource));
  return Math.min(MAX_REPLICAS, countedSurge(resource.spec.value.updateStrategy, pods));
}

/** Returns the number of pods. A cron job counts as one run; each active run is a job that counts instead of it. */
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
    // Records of earlier versions may have requests that are too large to add up. Such pods are never placed.
    if (error instanceof SchedulerError) return new Map();
    throw error;
  }
}

export function sizeOf(sizes: Readonly<Record<string, bigint | number>>): number {
  return Object.values(sizes).reduce<number>((sum, size) => sum + Number(size), 0);
}
