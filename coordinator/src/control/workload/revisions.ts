import { type ResourceRecord, RevisionRecord } from "@forage/proto/forage/store/v1/store";
import { toTimestamp } from "../../model/timestamp.ts";
import type { Workload } from "../../model/workload.ts";

/** Enough to find the one that worked; each holds a whole resource. */
const keptRevisions = 10;

export interface NewRevision {
  readonly revision: RevisionRecord;
  /** The number that the same content had before. */
  readonly replaces: number | undefined;
}

/**
 * The revision of what is wanted. The newest keeps its number while the template stays the same. One that comes back gets a new
 * number, and has to prove itself anew: what was good then need not be good now.
 */
export function revisionFor(
  record: ResourceRecord,
  wanted: Workload,
  revisions: readonly RevisionRecord[],
  nowMs: number,
): NewRevision {
  const newest = Math.max(0, ...revisions.map(({ number }) => number));
  const same = revisions.find(({ templateHash }) => templateHash === wanted.templateHash);
  const kept = same?.number === newest ? same : undefined;
  const revision = RevisionRecord.fromPartial({
    namespace: record.namespace,
    kind: record.kind,
    name: record.name,
    number: kept?.number ?? newest + 1,
    specHash: record.specHash,
    resource: record.resource,
    labels: record.labels,
    templateHash: wanted.templateHash,
    objectVersions: wanted.template.objectVersions,
    createdAt: kept?.createdAt ?? toTimestamp(nowMs),
    rolloutId: record.rolloutId,
    changeCause: wanted.settings.changeCause,
    good: kept?.good ?? false,
    restartedAt: record.restartedAt,
  });
  return { revision, replaces: kept === undefined ? same?.number : undefined };
}

/** What to go back to from a revision: the newest that has proved itself, unless it has done so itself. */
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

/** Numbers that the history has no room for once the new one is in; the one to go back to always stays. */
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
    .slice(keptRevisions - 1)
    .filter((number) => number !== good?.number);
}
