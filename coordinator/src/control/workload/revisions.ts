import { type ResourceRecord, RevisionRecord } from "@forage/proto/forage/store/v1/store";
import { toTimestamp } from "../../model/timestamp.ts";
import type { Workload } from "../../model/workload.ts";

/** The number of revisions that are kept, to find the last good one. Each holds a whole resource. */
const KEPT_REVISIONS = 10;

export interface NewRevision {
  readonly revision: RevisionRecord;
  /** The number under which the same content was stored before. */
  readonly replaces: number | undefined;
}

/**
 * Returns the revision of the specification. The newest revision keeps its number while the template stays the same. A
 * template that is applied again later gets a new number and has to succeed again, because its success may be out of date.
 */
export function revisionFor(
  record: ResourceRecord,
  applied: Workload,
  revisions: readonly RevisionRecord[],
  nowMs: number,
): NewRevision {
  const newest = Math.max(0, ...revisions.map(({ number }) => number));
  const same = revisions.find(({ templateHash }) => templateHash === applied.templateHash);
  const kept = same?.number === newest ? same : undefined;
  const revision = RevisionRecord.fromPartial({
    namespace: record.namespace,
    kind: record.kind,
    name: record.name,
    number: kept?.number ?? newest + 1,
    specHash: record.specHash,
    resource: record.resource,
    labels: record.labels,
    templateHash: applied.templateHash,
    objectVersions: applied.template.objectVersions,
    createdAt: kept?.createdAt ?? toTimestamp(nowMs),
    rolloutId: record.rolloutId,
    changeCause: applied.settings.changeCause,
    good: kept?.good ?? false,
    restartedAt: record.restartedAt,
  });
  return { revision, replaces: kept === undefined ? same?.number : undefined };
}

/**
 * Returns the target of a rollback from a revision: the newest earlier revision that has succeeded. Undefined if the
 * revision itself has succeeded.
 */
export function lastGood(
  revisions: readonly RevisionRecord[],
  from: { readonly number: number },
): RevisionRecord | undefined {
  const good = revisions.filter((revision) => revision.good && revision.number !== from.number);
  return good.reduce<RevisionRecord | undefined>(
    (best, revision) => (best === undefined || revision.number > best.number ? revision : best),
    undefined,
  );
}

/**
 * Returns the numbers of the revisions beyond the limit of the history once the new one is added. The rollback target
 * always stays.
 */
export function outdated(
  revisions: readonly RevisionRecord[],
  added: RevisionRecord,
  replaced: number | undefined,
): number[] {
  const good = lastGood(
    revisions.filter(({ number }) => number !== replaced),
    added,
  );
  return revisions
    .map(({ number }) => number)
    .filter((number) => number !== added.number && number !== replaced)
    .sort((a, b) => b - a)
    .slice(KEPT_REVISIONS - 1)
    .filter((number) => number !== good?.number);
}
