import type { Log } from "@forage/common/log";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { Explanation, Profile, RebalanceOptions } from "@forage/scheduler";
import { ActingTime } from "../acting-time/acting-time.ts";
import type { ServiceFailure } from "../destination/service-failure.ts";
import { unschedulableEvent } from "../events/from-pods.ts";
import type { MetricsCollector } from "../metrics/metrics-collector.ts";
import type { EventRecorder } from "../model/event.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { PodEntry } from "../state/entries.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { AddressController, type AddressRanges } from "./addresses/controller.ts";
import { AutoscaleController } from "./autoscale/controller.ts";
import { CronController } from "./cron/controller.ts";
import type { RunQuota } from "./cron/plan.ts";
import { DependsController } from "./depends/controller.ts";
import { isBlocked } from "./depends/dependency-gate.ts";
import { DrainController } from "./drain/controller.ts";
import { EvictionController } from "./eviction/controller.ts";
import type { DefaultTolerations } from "./eviction/eviction-of.ts";
import type { MassLoss } from "./eviction/mass-loss.ts";
import { JobReconciler } from "./job/reconciler.ts";
import { KeptPodsController } from "./kept-pods/controller.ts";
import { ObjectGarbage } from "./objects-garbage.ts";
import { PlacementController } from "./placement/controller.ts";
import { UnschedulablePods } from "./placement/unschedulable-pods.ts";
import { RebalanceController, type RebalanceSchedule } from "./rebalance/controller.ts";
import { RolloutController } from "./rollout/controller.ts";
import { loggedSteps, type StepSink } from "./step-sink.ts";
import { WorkloadController } from "./workload/controller.ts";
import type { Prefetcher } from "./workload/prefetch.ts";
import type { ProgressLimits } from "./workload/progress-limits.ts";

export interface ControlOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  /** The clock of deadlines, which excludes time in which the coordinator could not act. Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
  /** Resolves when reconciling may begin: before, no pod or run is created and no pod is placed. Default: resolved. */
  readonly started?: Promise<void> | undefined;
  readonly randomName: (length: number) => string;
  readonly profile: Profile;
  readonly limits: ProgressLimits;
  /** The times for which pods without a toleration stay on lost or broken nodes. */
  readonly tolerations?: DefaultTolerations;
  /** Tracks the share of lost nodes. Default: no node is lost. */
  readonly massLoss?: MassLoss | undefined;
  /** Detects that the process was blocked for a while. Called before nodes are judged by missing heartbeats. */
  readonly checkStall?: () => void;
  /** The automatic rebalancing. Undefined: pods are moved on request only. */
  readonly rebalance?: RebalanceSchedule | undefined;
  /** Records decisions and their reasons as events. */
  readonly events: EventRecorder;
  /** Requests that nodes pull images ahead of pods. Undefined: nodes have every image. */
  readonly prefetcher?: Prefetcher & { subscribe(listener: (workloadKey: string) => void): () => void };
  /** The metrics that autoscaling uses. */
  readonly metrics: MetricsCollector;
  /** The ranges from which addresses of services are assigned. */
  readonly addresses: AddressRanges;
  readonly readyEndpoints: (namespace: string, service: string) => number;
  /** Returns the reason why the service can have no endpoints. Undefined: it can. */
  readonly serviceFailure?: (namespace: string, service: string) => ServiceFailure | undefined;
  /** Receives the steps of reconcilers. Default: writes them to the log. */
  readonly steps?: StepSink;
  /** Kinds of workloads whose pods another component creates and stops. */
  readonly foreignKinds?: readonly string[] | undefined;
  /** Whether cron jobs start runs. Default: true. */
  readonly startRuns?: boolean;
  /** Returns the reason why a namespace's policy rejects the resource's pods. Default: it accepts them. */
  readonly policyRefusal?: (record: ResourceRecord) => string | undefined;
  /** The quotas that limit runs of cron jobs. Default: none. */
  readonly runQuota?: RunQuota;
  /** Returns the error of a route or of a service's inline route. Empty: it has none. */
  readonly routeProblem?: (kind: string, namespace: string, name: string) => string;
}

export interface Control {
  readonly unschedulable: UnschedulablePods;
  readonly rollouts: RolloutController;
  readonly rebalancing: RebalanceController;
  readonly autoscale: AutoscaleController;
  /** Returns the reason why the pod has no node. */
  readonly explainPlacement: (pod: PodEntry) => Explanation | undefined;
  close(): Promise<void>;
}

/** Starts all reconcilers on one cluster view. */
export function startControl(given: ControlOptions): Control {
  const options = { ...given, time: given.time ?? new ActingTime({ clock: given.clock }) };
  const { clock, steps = loggedSteps(options.log) } = options;
  const unschedulable = new UnschedulablePods({
    nowMs: clock.nowMs,
    onChange: (pod, summary) => {
      rollouts.wakeForPod(pod);
      workloads.wake(pod.workloadKey);
      options.events.record(unschedulableEvent(pod, summary));
    },
  });
  const rollouts = new RolloutController({ ...options, unschedulable });
  const placement = new PlacementController({ ...options, unschedulable });
  const jobs = new JobReconciler({ ...options, steps, held: isBlocked(options.state) });
  const foreign = Object.fromEntries(
    (options.foreignKinds ?? []).map((kind) => [kind, async () => undefined]),
  );
  const workloads = new WorkloadController({
    ...options,
    steps,
    // Cron jobs create no pods, and are reconciled by a loop of their own.
    ofKind: { ...foreign, job: (key) => jobs.reconcile(key), cron_job: async () => undefined },
    unschedulable,
    placement: placement.newPods,
    pickVictims: (pods, count) => placement.pickVictims(pods, count),
  });
  const crons = new CronController({ ...options, steps });
  const depends = new DependsController(options);
  const stopPrefetching = options.prefetcher?.subscribe((key) => {
    workloads.wake(key);
    rollouts.wakeForWorkload(key);
  });
  const evictions = new EvictionController(options);
  const drains = new DrainController({ ...options, unschedulable });
  const suggest = (wish: RebalanceOptions) => placement.suggestMoves(wish);
  const rebalancing = new RebalanceController({ ...options, suggest });
  const garbage = new ObjectGarbage(options);
  const keptPods = new KeptPodsController(options);
  const addresses = new AddressController(options);
  const autoscale = new AutoscaleController(options);
  return {
    unschedulable,
    rollouts,
    rebalancing,
    autoscale,
    explainPlacement: (pod) => placement.explain(pod),
    close: async () => {
      stopPrefetching?.();
      await autoscale.close();
      await addresses.close();
      await keptPods.close();
      await garbage.close();
      await rebalancing.close();
      await drains.close();
      await evictions.close();
      await depends.close();
      await crons.close();
      await workloads.close();
      await placement.close();
      await rollouts.close();
    },
  };
}
