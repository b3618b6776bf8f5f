import {
  AttemptState,
  type ContainerServiceStatus,
  type RevisionRecord,
  RolloutAttempt,
} from "@forage/proto/forage/store/v1/store";
import { rolloutAttemptAt } from "../../model/effective-workload.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { type Workload, workloadOfRevision } from "../../model/workload.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { reached } from "./availability.ts";
import type { Hold } from "./hold.ts";
import { lastGood, outdated, revisionFor } from "./revisions.ts";
import { canarySize } from "./update-limits.ts";
import type { WorkloadInput } from "./workload-input.ts";
import type { WorkloadStep } from "./workload-step.ts";

/** The state of a workload's rollout. */
export interface RolloutState {
  readonly attempt: RolloutAttempt;
  /** The step that begins the attempt. Undefined: it has begun before. */
  readonly start: WorkloadStep | undefined;
  /** The revision of the resource's specification. */
  readonly own: RevisionRecord | undefined;
  /** The last good revision: pods are created from it while the rollout is paused, and it is the target of a rollback. */
  readonly before: Workload | undefined;
  readonly beforeNumber: number;
  readonly hold: Hold;
}

/** Returns the rollout attempt for the resource's specification: the current one, or a new one. */
export function rolloutStateOf(
  input: WorkloadInput,
  resource: ResourceEntry,
  applied: Workload,
): RolloutState {
  const known = rolloutAttemptAt(input.status, resource.record, applied);
  const start = known === undefined ? begin(input, resource, applied) : undefined;
  const attempt = known ?? start?.attempt ?? RolloutAttempt.fromPartial({});
  const own = start?.revision ?? input.revisions.find(({ number }) => number === attempt.revision);
  // A revision that has succeeded is not held, and needs no rollback target.
  const good = own?.good ? undefined : lastGood(input.revisions, { number: attempt.revision });
  const before = good && workloadOfRevision(applied, good);
  const hold = holdOf(attempt, input.status, applied, before);
  return { attempt, start, own, before, beforeNumber: good?.number ?? 0, hold };
}

/** Returns the limit of the rollout for now. A failing revision is never held. */
export function holdOf(
  { state, promoted, rolledBackTo }: RolloutAttempt,
  status: ContainerServiceStatus | undefined,
  { settings, replicas }: Workload,
  before: Workload | undefined,
): Hold {
  const open = state === AttemptState.PROGRESSING || state === AttemptState.FAILED;
  if (!open || rolledBackTo > 0) return { type: "none" };
  if (status?.paused) return { type: "paused" };
  if (settings.canary === undefined || promoted || before === undefined) return { type: "none" };
  const pods = canarySize(settings.canary, replicas);
  return pods < replicas ? { type: "canary", pods } : { type: "none" };
}

function begin(
  input: WorkloadInput,
  resource: ResourceEntry,
  applied: Workload,
): (WorkloadStep & { readonly type: "start-rollout" }) | undefined {
  const { nowMs, revisions, status } = input;
  const { revision, replaces } = revisionFor(resource.record, applied, revisions, nowMs);
  const attempt = RolloutAttempt.fromPartial({
    generation: resource.record.generation,
    templateHash: applied.templateHash,
    revision: revision.number,
    state: AttemptState.PROGRESSING,
    startedAt: toTimestamp(nowMs),
    progressedAt: toTimestamp(nowMs),
    progress: reached(applied, input.pods, input),
  });
  const same = status?.attempt?.templateHash === applied.templateHash;
  return {
    type: "start-rollout",
    attempt,
    revision,
    forget: [...(replaces === undefined ? [] : [replaces]), ...outdated(revisions, revision, replaces)],
    why: same ? `applied again, as revision ${revision.number}` : `revision ${revision.number}`,
  };
}
