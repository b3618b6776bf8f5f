import type {
  ContainerServiceStatus,
  ResourceRecord,
  RevisionRecord,
  RolloutAttempt,
} from "@forage/proto/forage/store/v1/store";
import { type Workload, workloadOfRevision } from "./workload.ts";

/** The try to run just what the resource asks for now; undefined: none has begun. */
export function attemptAt(
  status: ContainerServiceStatus | undefined,
  { generation }: Pick<ResourceRecord, "generation">,
  wanted: Workload,
): RolloutAttempt | undefined {
  const attempt = status?.attempt;
  const same = attempt?.generation === generation && attempt.templateHash === wanted.templateHash;
  return same ? attempt : undefined;
}

/** What a resource's pods are to be like: what it asks for, or the revision that it was rolled back to. */
export function workloadInForce(
  record: ResourceRecord,
  wanted: Workload,
  status: ContainerServiceStatus | undefined,
  revisionOf: (number: number) => RevisionRecord | undefined,
): Workload {
  const number = attemptAt(status, record, wanted)?.rolledBackTo ?? 0;
  const revision = number === 0 ? undefined : revisionOf(number);
  return (revision && workloadOfRevision(wanted, revision)) ?? wanted;
}
