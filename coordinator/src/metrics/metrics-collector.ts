import {
  type PodMetrics as PodMetricsMessage,
  type PodMetricsRequest,
  PodMetricsRequests,
} from "@forage/proto/forage/agent/v1/agent";
import { LastSent, type LastSentOptions } from "../feed/last-sent.ts";
import { autoscalingOf, MEASURED_RESOURCES, scrapeTargetOf } from "../model/autoscaling.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change, PodEntry, ResourceEntry } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";
import { PodMetrics } from "./pod-metrics.ts";
import { PushedMetrics } from "./pushed-metrics.ts";

export interface MetricsCollectorOptions {
  readonly state: ClusterView;
  readonly clock: Clock;
  /** The time between two samples. */
  readonly intervalMs: number;
  /**
   * Whether the usage of every pod is measured for display. Default: only usage that autoscaling
   * needs.
   */
  readonly usageOfAllPods?: boolean | undefined;
}

/** The metrics to collect from the pods of one workload. */
interface MetricsDemand {
  readonly usage: boolean;
  /** Custom metrics, whose values pods may send themselves. */
  readonly names: readonly string[];
}

/** The number of samples that may be late or lost before a pod counts as not measured, plus one. */
const SAMPLES_MISSED = 3;
/**
 * The number of consecutive samples of a pod that agents may omit while its usage hardly changes.
 */
const SAMPLES_LEFT_OUT = 3;

/**
 * Holds the inputs of autoscaling (the pods to measure, their samples, and pushed values) and the
 * usage of all pods.
 */
export class MetricsCollector {
  readonly pushed: PushedMetrics;
  readonly pods: PodMetrics;
  /**
   * The newest usage of every measured pod. It may be older than the usage by which autoscaling
   * decides.
   */
  readonly usage: PodMetrics;
  readonly #options: MetricsCollectorOptions;
  /** The demand by workload. */
  readonly #demands = new Map<string, MetricsDemand>();
  /** The callbacks of the nodes' newest sessions. */
  readonly #readers = new Map<string, () => void>();
  readonly #messages: LastSentOptions<PodMetricsRequests> = {
    read: (node) => this.requestsFor(node),
    nothing: { pods: [], intervalMs: 0, usageOfAllPods: false },
    encode: (requests) => PodMetricsRequests.encode(requests).finish(),
  };
  readonly #unsubscribe: () => void;

  constructor(options: MetricsCollectorOptions) {
    const { state, clock, intervalMs } = options;
    this.#options = options;
    this.pushed = new PushedMetrics(clock);
    const lifeMs = SAMPLES_MISSED * intervalMs + intervalMs / 2;
    this.pods = new PodMetrics({ clock, lifeMs });
    this.usage = new PodMetrics({ clock, lifeMs: lifeMs + SAMPLES_LEFT_OUT * intervalMs });
    for (const entry of state.resources()) this.#note(entry, keyOf(entry));
    this.#unsubscribe = state.subscribe((changes) => this.#follow(changes));
  }

  /** The interval at which agents measure. */
  get intervalMs(): number {
    return this.#options.intervalMs;
  }

  /**
   * Calls `onChange` when policies require other metrics of the node than before, until a newer
   * session of the node calls this. The caller must track the node's pods itself. Returns a function
   * that ends this.
   */
  read(node: string, onChange: () => void): () => void {
    this.#readers.set(node, onChange);
    return () => {
      if (this.#readers.get(node) === onChange) this.#readers.delete(node);
    };
  }

  /** Returns the metrics to request from the node; undefined if there are none. */
  requestsFor(node: string): PodMetricsRequests | undefined {
    const { state, intervalMs, usageOfAllPods = false } = this.#options;
    const pods =
      this.#demands.size > 0 ? state.podsOnNode(node).flatMap((pod) => this.#requestFor(pod) ?? []) : [];
    return pods.length === 0 && !usageOfAllPods ? undefined : { pods, intervalMs, usageOfAllPods };
  }

  /** Tracks the requests that were sent in one session of the node. */
  sessionOf(node: string): LastSent<PodMetricsRequests> {
    return new LastSent(node, this.#messages);
  }

  /** Stores the node's measurements of its own pods, as far as they were requested. */
  receive(node: string, { pods }: PodMetricsMessage): void {
    const { state, usageOfAllPods = false } = this.#options;
    for (const sample of pods) {
      const pod = state.podByUid(sample.podUid);
      if (pod?.record.node !== node) continue;
      if (this.#demands.has(pod.workloadKey)) this.pods.record(sample);
      if (usageOfAllPods) this.usage.record({ ...sample, values: {}, problem: "" });
    }
  }

  close(): void {
    this.#unsubscribe();
    this.#readers.clear();
  }

  #requestFor({ record, workloadKey: key }: PodEntry): PodMetricsRequest | undefined {
    const demand = this.#demands.get(key);
    if (demand === undefined || record.stoppingSince !== undefined) return undefined;
    const target = demand.names.length === 0 ? undefined : scrapeTargetOf(record.template);
    if (!demand.usage && target === undefined) return undefined;
    const scrape = target && { ...target, names: [...demand.names] };
    return { podUid: record.uid, usage: demand.usage, scrape };
  }

  #follow(changes: readonly Change[]): void {
    const nodes = new Set<string>();
    for (const change of changes) {
      if (change.type === "pod" && change.after === undefined && change.before !== undefined) {
        this.pods.forget(change.before.record.uid);
        this.usage.forget(change.before.record.uid);
      }
      if (change.type !== "resource") continue;
      const entry = change.after ?? change.before;
      if (entry === undefined || !this.#note(change.after, keyOf(entry))) continue;
      for (const { record } of this.#options.state.podsOfWorkload(keyOf(entry))) {
        if (record.node !== "") nodes.add(record.node);
      }
    }
    for (const node of nodes) this.#readers.get(node)?.();
  }

  /** Updates the requests of a workload. Reports whether they changed. */
  #note(entry: ResourceEntry | undefined, key: string): boolean {
    const before = this.#demands.get(key);
    const after = entry && demandOf(entry);
    if (after === undefined) return this.#demands.delete(key);
    this.#demands.set(key, after);
    return before?.usage !== after.usage || before.names.join(" ") !== after.names.join(" ");
  }
}

function demandOf({ record }: ResourceEntry): MetricsDemand | undefined {
  const spec = record.resource?.spec;
  if (spec?.$case !== "containerService" || record.deleting) return undefined;
  const metrics = autoscalingOf(spec.value)?.metrics;
  if (metrics === undefined) return undefined;
  const names = [...new Set(metrics.map(({ name }) => name))];
  const isMeasured = (name: string): boolean => MEASURED_RESOURCES.some((resource) => resource === name);
  return { usage: names.some(isMeasured), names: names.filter((name) => !isMeasured(name)) };
}

function keyOf({ record }: ResourceEntry): string {
  return workloadKey(record.namespace, record.kind, record.name);
}
