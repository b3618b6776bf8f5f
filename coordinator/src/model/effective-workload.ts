import type {
  ContainerServiceStatus,
  ResourceRecord,
  RevisionRecord,
  RolloutAttempt,
} from "@forage/proto/forage/store/v1/store";
import { type Workload, workloadOfRevision } from "./workload.ts";

/** Returns the rollout attempt for what the resource specifies now. Undefined: none has begun. */
export function rolloutAttemptAt(
  status: ContainerServiceStatus | undefined,
  { generation }: Pick<ResourceRecord, "generation">,
  applied: Workload,
): RolloutAttempt | undefined {
  const attempt = status?.attempt;
  const same = attempt?.generation === generation && attempt.templateHash === applied.templateHash;
  return same ? attempt : undefined;
}

/** Returns the workload from which pods are created: that of the resource, or that of the revision of a rollback. */
export function effectiveWorkload(
  record: ResourceRecord,
  applied: Workload,
  status: ContainerServiceStatus | undefined,
  revisionOf: (number: number) => RevisionRecord | undefined,
): Workload {
  const number = rolloutAttemptAt(status, record, applied)?.rolledBackTo ?? 0;
  const revision = number === 0 ? undefined : revisionOf(number);
  return (revision && workloadOfRevision(applied, revision)) ?? applied;
}
