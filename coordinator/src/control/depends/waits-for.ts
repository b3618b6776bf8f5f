import { isReady } from "../../endpoints/readiness.ts";
import { type Dependency, dependenciesOf } from "../../model/depends-on.ts";
import { resourceKey } from "../../model/keys.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { jobStatusOf } from "../job/job-input.ts";

/** A dependency that is not met yet. */
export interface UnmetDependency {
  /** The dependency as `kind/name`, such as `job/migrate`. */
  readonly name: string;
  readonly why: string;
  /** Whether the dependency has ended so that the condition can never be met. */
  readonly failed: boolean;
}

/** Returns the resource's unmet dependencies, in the annotation's order. */
export function waitsFor({ record }: ResourceEntry, state: ClusterView): UnmetDependency[] {
  return dependenciesOf(record).flatMap((dependency) => {
    const found = unmetOf(record.namespace, dependency, state);
    return found === undefined ? [] : [{ name: `${dependency.kind}/${dependency.name}`, ...found }];
  });
}

/**
 * Formats unmet dependencies, such as `waits for job/migrate: 1 of 3 completed; container_service/db: 0/2 ready`. Empty for
 * none.
 */
export function waitingText(waiting: readonly UnmetDependency[]): string {
  if (waiting.length === 0) return "";
  return `waits for ${waiting.map(({ name, why }) => `${name}: ${why}`).join("; ")}`;
}

type DependencyState = Omit<UnmetDependency, "name"> | undefined;

function unmetOf(namespace: string, { kind, name }: Dependency, state: ClusterView): DependencyState {
  const resource = state.resource(resourceKey(namespace, kind, name));
  if (resource === undefined) return { why: "does not exist", failed: false };
  if (resource.record.deleting) return { why: "is being deleted", failed: false };
  return kind === "job" ? jobState(resource, state) : serviceState(resource, state);
}

function jobState({ record }: ResourceEntry, state: ClusterView): DependencyState {
  const status = jobStatusOf(state, record.namespace, record.name);
  const job = state.jobs.of(record, status?.run);
  if (job === undefined || status === undefined || status.run !== job.run)
    return { why: "has not started", failed: false };
  if (status.condition === "Complete") return undefined;
  if (status.condition === "Failed") return { why: `has failed: ${status.message}`, failed: true };
  const of = job.completions === undefined ? "" : ` of ${job.completions}`;
  return { why: `${status.succeeded}${of} completed`, failed: false };
}

function serviceState({ record, workload }: ResourceEntry, state: ClusterView): DependencyState {
  if (workload === undefined) return { why: "has no pods", failed: false };
  const pods = state.podsOfWorkload(workloadKey(record.namespace, record.kind, record.name));
  const current = pods.filter((pod) => workload.currentHashes.has(pod.record.templateHash));
  const ready = current.filter((pod) => isReady(pod, (node) => state.node(node)?.health.ready ?? false));
  if (ready.length >= workload.replicas) return undefined;
  return { why: `${ready.length}/${workload.replicas} ready`, failed: false };
}
