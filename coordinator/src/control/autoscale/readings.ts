import type { PodSample } from "../../metrics/pod-metrics.ts";
import type { MetricName, PushedValue } from "../../metrics/pushed-metrics.ts";
import {
  type Autoscaling,
  MEASURED_RESOURCES,
  METRICS_ANNOTATIONS,
  type MetricTarget,
  scrapeTargetOf,
} from "../../model/autoscaling.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { MetricReading, PodReading } from "./reading.ts";
import { requestOf } from "./requests.ts";

export interface ReadingSources {
  readonly namespace: string;
  /** The name of the container service. */
  readonly name: string;
  readonly pods: readonly PodEntry[];
  readonly isReady: (pod: PodEntry) => boolean;
  readonly sampleOf: (podUid: string) => PodSample | undefined;
  readonly pushed: (name: MetricName) => PushedValue | undefined;
}

/** The time after a pod's start in which its CPU use is no measure of its load. Kubernetes' default. */
const START_MS = 300_000;
/** The values of POD_PHASE_SUCCEEDED, POD_PHASE_FAILED and POD_PHASE_REMOVED. */
const OVER_PHASES: ReadonlySet<number> = new Set([3, 4, 6]);
/** The value of POD_PHASE_RUNNING. */
const RUNNING_PHASE = 2;

/**
 * Returns the current reading of each of the policy's metrics: a value pushed for the workload or its namespace, otherwise
 * one value for each pod.
 */
export function readingsOf({ metrics }: Autoscaling, sources: ReadingSources): MetricReading[] {
  const pods = sources.pods.filter(
    ({ record, status }) => record.stoppingSince === undefined && !OVER_PHASES.has(status?.phase ?? 0),
  );
  return metrics.map((target) => ({
    target,
    total: totalOf(target.name, sources),
    pods: pods.map((pod) => podReading(pod, target, sources)),
  }));
}

function totalOf(name: string, { namespace, name: workload, pushed }: ReadingSources): number | undefined {
  const own = pushed({ namespace, name, workload, pod: "" });
  return (own ?? pushed({ namespace, name, workload: "", pod: "" }))?.value;
}

function podReading(pod: PodEntry, { name, type }: MetricTarget, sources: ReadingSources): PodReading {
  const { record, status } = pod;
  const sample = sources.sampleOf(record.uid);
  const ready = sources.isReady(pod);
  const isRunning = status?.phase === RUNNING_PHASE;
  const value = isRunning ? valueOfPod(pod, name, sample, sources) : undefined;
  const problem = value === undefined ? problemOf(pod, name, sample) : undefined;
  return {
    name: record.name,
    ready,
    starting: !isRunning || (name === "cpu" && sample !== undefined && isWarmingUp(sample, ready)),
    value,
    ...(problem !== undefined && { problem }),
    request: type === "Utilization" ? requestOf(record.template, name) : undefined,
  };
}

/**
 * Reports whether the sample is from the pod's first minutes and not ready for all of the measured time. Such a sample
 * doesn't count.
 */
function isWarmingUp({ runningMs, readyMs, windowMs }: PodSample, ready: boolean): boolean {
  return runningMs < START_MS && (!ready || readyMs < windowMs);
}

function valueOfPod(
  { record }: PodEntry,
  name: string,
  sample: PodSample | undefined,
  { namespace, pushed }: ReadingSources,
): number | undefined {
  if (name === "cpu") return sample?.cpuCores;
  if (name === "memory") return sample?.memoryBytes;
  return pushed({ namespace, name, workload: "", pod: record.name })?.value ?? sample?.values.get(name);
}

function problemOf({ record }: PodEntry, name: string, sample: PodSample | undefined): string | undefined {
  if (MEASURED_RESOURCES.some((resource) => resource === name)) return undefined;
  if (scrapeTargetOf(record.template) === undefined)
    return `no value was pushed, and pods are not scraped without the annotation ${METRICS_ANNOTATIONS.port}`;
  return sample?.problem || undefined;
}
