import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { type JobSpec, PodConfig } from "@forage/proto/forest/v1/forage";
import { hashMessage } from "./hash.ts";
import { JOB_ANNOTATIONS } from "./job-annotations.ts";
import type { Labels } from "./labels.ts";
import { toEpochMs } from "./timestamp.ts";

/** A job for its reconciler, with Kubernetes' defaults for missing settings. */
export interface Job {
  readonly namespace: string;
  readonly name: string;
  /**
   * The hash of the content that runs. The job starts over when it changes. Limits, parallelism and the labels of a request
   * are not part of it.
   */
  readonly run: string;
  /** The number of pods that must succeed. Undefined: one pod of a work queue, after which the others have to end too. */
  readonly completions: number | undefined;
  readonly parallelism: number;
  readonly indexed: boolean;
  /** The number of failed runs that are tolerated. */
  readonly backoffLimit: number;
  /** The active deadline. Undefined: none. */
  readonly activeDeadlineMs: number | undefined;
  /** The time to live after the end. Undefined: the job stays until it is deleted. */
  readonly ttlMs: number | undefined;
  /** The template of every pod, with the restart policy. Its environment is not pinned to versions of objects. */
  readonly template: PodTemplate;
  readonly labels: Labels;
}

const DEFAULT_BACKOFF_LIMIT = 6;

/**
 * The limit of completions and parallelism, which equals that of a service's replicas. A stored record with more gets this
 * many.
 */
export const MAX_COMPLETIONS = 10_000;

/** Returns the job of a resource. Undefined if the resource isn't one. `begun` is the run of the job's status. */
export function jobOf(record: ResourceRecord, begun = ""): Job | undefined {
  const spec = record.resource?.spec;
  if (spec?.$case !== "job") return undefined;
  const { jobConfig: config, podConfig } = spec.value;
  const template = templateOf(spec.value);
  const parallelism = Math.min(MAX_COMPLETIONS, config?.parallelism || 1);
  const given = config?.completions || (parallelism === 1 ? 1 : undefined);
  const completions = given && Math.min(MAX_COMPLETIONS, given);
  const indexed = config?.completionMode === "Indexed";
  return {
    namespace: record.namespace,
    name: record.name,
    run: presentRun(record, template, { completions, indexed, isGiven: Boolean(config?.completions) }, begun),
    completions,
    parallelism,
    indexed,
    backoffLimit: backoffLimitOf(config?.backoffLimit ?? 0, podConfig),
    activeDeadlineMs: millis(config?.activeDeadlineSeconds),
    ttlMs: millis(config?.ttlSecondsAfterFinished),
    template,
    labels: { ...record.labels, ...podConfig?.labels },
  };
}

function templateOf({ container, volumes, jobConfig, podConfig }: JobSpec): PodTemplate {
  const restartPolicy = jobConfig?.restartPolicy || podConfig?.restartPolicy || "OnFailure";
  return PodTemplate.fromPartial({
    ...(container !== undefined && { container }),
    volumes,
    podConfig: { ...(podConfig ?? PodConfig.fromPartial({})), restartPolicy },
  });
}

/** Returns the back-off limit. 0 in the API means the default, so an annotation requests a job without retries. */
function backoffLimitOf(limit: number, podConfig: PodConfig | undefined): number {
  if (limit > 0) return limit;
  const text = podConfig?.annotations[JOB_ANNOTATIONS.backoffLimit];
  return text === undefined ? DEFAULT_BACKOFF_LIMIT : Number(text);
}

/**
 * Returns the run that continues if it has the same content. Without completions, parallelism decides whether the job is a
 * single pod or a work queue, but a change of parallelism begins no new run.
 */
function presentRun(
  record: ResourceRecord,
  template: PodTemplate,
  it: { readonly completions: number | undefined; readonly indexed: boolean; readonly isGiven: boolean },
  begun: string,
): string {
  const own = runOf(record, template, it.completions, it.indexed);
  if (it.isGiven || begun === "" || begun === own) return own;
  const other = runOf(record, template, it.completions === undefined ? 1 : undefined, it.indexed);
  return begun === other ? other : own;
}

/**
 * Returns the hash of a run. It includes the creation time, so that a job that was deleted and applied again is a new run.
 */
function runOf(
  record: ResourceRecord,
  template: PodTemplate,
  completions: number | undefined,
  indexed: boolean,
): string {
  const { podConfig } = template;
  const kept = Object.entries(podConfig?.annotations ?? {}).filter(([key]) => !UNRELATED.has(key));
  const content = {
    ...template,
    podConfig: podConfig && { ...podConfig, annotations: Object.fromEntries(kept) },
  };
  const extra = [String(completions ?? ""), String(indexed), String(toEpochMs(record.createdAt) ?? 0)];
  return hashMessage(PodTemplate, content, ...extra).slice(0, 16);
}

/** Annotations that don't affect what runs. */
const UNRELATED: ReadonlySet<string> = new Set([JOB_ANNOTATIONS.backoffLimit, JOB_ANNOTATIONS.dependsOn]);

function millis(seconds: bigint | undefined): number | undefined {
  return seconds === undefined || seconds === 0n ? undefined : Number(seconds) * 1000;
}
