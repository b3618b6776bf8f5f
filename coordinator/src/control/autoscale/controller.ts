import type { Log } from "@forage/common/log";
import type { AutoscalingStatus } from "@forage/proto/forage/operator/v1/operator";
import { ScaleRecord } from "@forage/proto/forage/store/v1/store";
import { ActingTime } from "../../acting-time/acting-time.ts";
import { isReady } from "../../endpoints/readiness.ts";
import type { MetricsCollector } from "../../metrics/metrics-collector.ts";
import { type Autoscaling, autoscalingOf } from "../../model/autoscaling.ts";
import { encodeRecord } from "../../model/codec.ts";
import type { EventRecorder } from "../../model/event.ts";
import { resourceKey, scaleKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { replicasOf, workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, ResourceEntry } from "../../state/entries.ts";
import type { RecordEntry } from "../../state/record-view.ts";
import type { Compare, Op, Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import { write } from "../write.ts";
import { newHistory, type ScaleHistory, withAdded } from "./history.ts";
import { MissingMetrics } from "./missing-metrics.ts";
import { readingsOf } from "./readings.ts";
import { type Recommendation, recommend } from "./recommend.ts";
import { statusView } from "./status-view.ts";

export interface AutoscaleOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  /** The clock of stabilization windows. It excludes time without recommendations. Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
  readonly events: EventRecorder;
  /** The collected metrics. Each new sample triggers an evaluation. */
  readonly metrics: MetricsCollector;
}

/** The state of a workload that one evaluation passes to the next. */
interface AutoscaleContext {
  readonly history: ScaleHistory;
  readonly result: Recommendation;
  readonly policy: Autoscaling;
  readonly current: number;
}

const KIND = "container_service";

/** Scales the container services that have autoscaling. Other services cause no work. */
export class AutoscaleController {
  readonly #options: AutoscaleOptions;
  readonly #loop: Loop;
  readonly #contexts = new Map<string, AutoscaleContext>();
  readonly #missing: MissingMetrics;
  readonly #time: ActingTime;

  constructor(options: AutoscaleOptions) {
    this.#options = options;
    const { state, clock, log, events, metrics } = options;
    this.#time = options.time ?? new ActingTime({ clock: options.clock });
    this.#missing = new MissingMetrics({ events, clock: this.#time, graceMs: 4 * metrics.intervalMs });
    this.#loop = new Loop({
      name: "autoscale",
      reconcile: (key) => this.#reconcile(key),
      clock,
      log,
      state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const entry of state.resources()) {
      if (policyOf(entry) !== undefined) this.#loop.wake(keyOf(entry.record));
    }
    for (const { record } of state.scales.all()) this.#loop.wake(keyOf(record));
  }

  /** Returns the status as of the last evaluation. Undefined without autoscaling, or before the first evaluation. */
  statusOf(namespace: string, name: string): AutoscalingStatus | undefined {
    const update = this.#contexts.get(keyOf({ namespace, name }));
    return update && statusView(update, this.#options.state.scales.get(scaleKey(namespace, name))?.record);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type !== "resource") continue;
      const { before, after } = change;
      if ((before && policyOf(before)) === undefined && (after && policyOf(after)) === undefined) continue;
      // Each decision makes the view derive the resource again under the same revision, which needs no evaluation.
      if (before?.revision === after?.revision) continue;
      this.#loop.wake(keyOf((after ?? before)?.record ?? { namespace: "", name: "" }));
    }
  }

  async #reconcile(key: string): Promise<number | undefined> {
    const { state, metrics } = this.#options;
    const [namespace = "", , name = ""] = key.split("/");
    const resource = state.resource(resourceKey(namespace, KIND, name));
    const scale = state.scales.get(scaleKey(namespace, name));
    const policy = resource && policyOf(resource);
    if (resource === undefined || policy === undefined) {
      this.#contexts.delete(key);
      this.#missing.forget(key);
      if (scale !== undefined) await this.#write([unchanged(scale)], { type: "delete", key: scale.key });
      return undefined;
    }
    if (resource.record.deleting) return undefined;
    await this.#evaluateResource(key, resource, policy, scale);
    return metrics.intervalMs;
  }

  async #evaluateResource(
    key: string,
    resource: ResourceEntry,
    policy: Autoscaling,
    scale: RecordEntry<ScaleRecord> | undefined,
  ): Promise<void> {
    const { metrics, state } = this.#options;
    const { namespace, name } = resource.record;
    const nowMs = this.#time.monotonicMs();
    const current = currentOf(resource, scale);
    const readings = readingsOf(policy, {
      namespace,
      name,
      pods: state.podsOfWorkload(key),
      isReady: (pod) => isReady(pod, (node) => state.node(node)?.health.ready ?? false),
      sampleOf: (podUid) => metrics.pods.get(podUid),
      pushed: (metric) => metrics.pushed.get(metric),
    });
    const history = this.#contexts.get(key)?.history ?? newHistory(current, nowMs);
    const result = recommend({ current, policy, readings, history, nowMs });
    if (result.replicas !== scale?.record.replicas) await this.#decide(resource, scale, current, result);
    const grown = withAdded(result.history, result.replicas - current, nowMs);
    this.#contexts.set(key, { history: grown, result, policy, current });
    this.#missing.update(namespace, name, result.metrics);
  }

  async #decide(
    resource: ResourceEntry,
    scale: RecordEntry<ScaleRecord> | undefined,
    current: number,
    { replicas, reason }: Recommendation,
  ): Promise<void> {
    const { log, clock, events } = this.#options;
    const { namespace, name } = resource.record;
    const isChange = replicas !== current;
    const record: ScaleRecord = {
      namespace,
      name,
      replicas,
      reason: isChange ? reason : (scale?.record.reason ?? ""),
      scaledAt: isChange ? toTimestamp(clock.nowMs()) : scale?.record.scaledAt,
    };
    const key = scaleKey(namespace, name);
    // The write fails if the resource was deleted or changed in the meantime.
    const compares: Compare[] = [
      { type: "mod-revision", key: resource.key, revision: resource.revision },
      scale === undefined ? { type: "absent", key } : unchanged(scale),
    ];
    await this.#write(compares, { type: "put", key, value: encodeRecord(ScaleRecord, record) });
    if (!isChange) return;
    log.info({ event: "workload-scaled", workload: keyOf(record), from: current, to: replicas, reason });
    const word = replicas > current ? "ScaledUp" : "ScaledDown";
    events.record({ namespace, kind: KIND, name, type: "Normal", reason: word, message: reason });
  }

  async #write(compares: readonly Compare[], op: Op): Promise<void> {
    await write({ compares, ops: [op] }, this.#options);
  }
}

function policyOf({ record }: ResourceEntry): Autoscaling | undefined {
  const spec = record.resource?.spec;
  return spec?.$case === "containerService" ? autoscalingOf(spec.value) : undefined;
}

function currentOf({ record }: ResourceEntry, scale: RecordEntry<ScaleRecord> | undefined): number {
  const spec = record.resource?.spec;
  return spec?.$case === "containerService" ? replicasOf(spec.value, scale?.record.replicas) : 0;
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return workloadKey(namespace, KIND, name);
}

function unchanged({ key, revision }: RecordEntry<unknown>): Compare {
  return { type: "mod-revision", key, revision };
}
