import type { UpdateRolloutRequest } from "@forage/proto/forage/operator/v1/operator";
import {
  AttemptState,
  ContainerServiceStatus,
  type ResourceRecord,
  type RevisionRecord,
} from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { lastGood } from "../../control/workload/revisions.ts";
import { holdOf } from "../../control/workload/rollout-state.ts";
import { CoordinatorError } from "../../errors.ts";
import { rolloutAttemptAt } from "../../model/effective-workload.ts";
import { hashLabels, hashMessage } from "../../model/hash.ts";
import { ROLLOUT_ANNOTATIONS } from "../../model/rollout-settings.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { effectOf, workloadOfRevision } from "../../model/workload.ts";
import type { ResourceEntry } from "../../state/entries.ts";

type Pins = ResourceRecord["pinnedVersions"];

export interface RolloutChange {
  /** The resource with a new generation, which a new rollout follows. Undefined: the resource doesn't change. */
  readonly record: ResourceRecord | undefined;
  readonly status: ContainerServiceStatus;
  /** The reason of the event, in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

export interface RolloutFacts {
  readonly entry: ResourceEntry;
  readonly status: ContainerServiceStatus | undefined;
  /** Returns the newest version of the object `kind/name` in the workload's namespace. Empty: there is no such object. */
  readonly newestVersion: (name: string) => string;
  /** The revisions, newest first. */
  readonly revisions: readonly RevisionRecord[];
  readonly nowMs: number;
}

/**
 * Returns the writes of the action. @throws CoordinatorError INVALID, NOT_FOUND, or FAILED_PRECONDITION with the current
 * state. Pure.
 */
export function rolloutChange({ action }: UpdateRolloutRequest, facts: RolloutFacts): RolloutChange {
  if (facts.entry.record.deleting)
    throw new CoordinatorError("FAILED_PRECONDITION", `${nameOf(facts)} is being deleted`);
  switch (action?.$case) {
    case "undo":
      return undo(action.value.toRevision, facts);
    case "restart":
      return restart(facts);
    case "pause":
      return pause(facts);
    case "resume":
      return resume(facts);
    case "promote":
      return promote(facts);
    case undefined:
      throw new CoordinatorError("INVALID", "the action is missing: undo, restart, pause, resume or promote");
    default:
      return action satisfies never;
  }
}

/** Restores the template of the revision. The number of replicas and the update strategy stay the same. */
function undo(toRevision: number, facts: RolloutFacts): RolloutChange {
  const { entry, status } = facts;
  const target = toRevision === 0 ? earlier(facts) : numbered(toRevision, facts);
  const attempt = entry.applied && rolloutAttemptAt(status, entry.record, entry.applied);
  const failed = attempt !== undefined && attempt.rolledBackTo > 0;
  if (target.templateHash === entry.applied?.templateHash && !failed)
    throw refusal(facts, `has revision ${target.number} already`);
  const { labels, resource } = entry.record;
  const present = resource?.spec;
  const past = target.resource?.spec;
  if (present?.$case !== "containerService" || past?.$case !== "containerService")
    throw new CoordinatorError("INTERNAL", `revision ${target.number} can't be read`);
  const { container, sidecars, initContainers, volumes, podConfig } = past.value;
  const { scaling, updateStrategy } = present.value;
  const annotations = { ...podConfig?.annotations };
  // An undo completes without waiting for a promotion.
  delete annotations[ROLLOUT_ANNOTATIONS.canary];
  const value = {
    scaling,
    updateStrategy,
    container,
    sidecars,
    initContainers,
    volumes,
    podConfig: podConfig && { ...podConfig, annotations },
  };
  const content = ForageResource.fromPartial({ ...resource, spec: { $case: "containerService", value } });
  const record = {
    ...entry.record,
    resource: content,
    specHash: hashMessage(ForageResource, content, hashLabels(labels)),
    restartedAt: target.restartedAt,
    pinnedVersions: pinsFor(target, facts),
  };
  const message = `undone to revision ${target.number}${pinsText(Object.keys(record.pinnedVersions))}`;
  return { record, status: { ...statusOf(facts), paused: false }, reason: "RolloutUndone", message };
}

function restart(facts: RolloutFacts): RolloutChange {
  const back = backTo(facts);
  if (back > 0)
    throw refusal(
      facts,
      `was rolled back to revision ${back}: undo to that revision or apply a corrected manifest first`,
    );
  const record = { ...facts.entry.record, restartedAt: toTimestamp(facts.nowMs) };
  return { record, status: statusOf(facts), reason: "RolloutRestarted", message: "restarted" };
}

function pause(facts: RolloutFacts): RolloutChange {
  const status = { ...statusOf(facts), paused: true };
  return { record: undefined, status, reason: "RolloutPaused", message: "paused" };
}

function resume(facts: RolloutFacts): RolloutChange {
  if (!facts.status?.paused) throw refusal(facts, "is not paused");
  const status = { ...goingOn(facts), paused: false };
  return { record: undefined, status, reason: "RolloutResumed", message: "resumed" };
}

function promote(facts: RolloutFacts): RolloutChange {
  const revision = canaryOf(facts);
  if (revision === undefined) throw refusal(facts, "has no canary to promote");
  const going = goingOn(facts);
  const promoted = { ...going, attempt: going.attempt && { ...going.attempt, promoted: true } };
  const message = `promoted revision ${revision}`;
  return { record: undefined, status: promoted, reason: "RolloutPromoted", message };
}

/**
 * Returns the number of the revision that waits with a canary, or would wait if it were not paused. Undefined: there is
 * none.
 */
export function canaryOf({
  entry,
  status,
  revisions,
}: Pick<RolloutFacts, "entry" | "status" | "revisions">): number | undefined {
  const attempt = entry.applied && rolloutAttemptAt(status, entry.record, entry.applied);
  if (attempt === undefined || entry.applied === undefined) return undefined;
  const good = lastGood(revisions, { number: attempt.revision });
  const before = good && workloadOfRevision(entry.applied, good);
  const unpaused = { ...(status ?? ContainerServiceStatus.fromPartial({})), paused: false };
  return holdOf(attempt, unpaused, entry.applied, before).type === "canary" ? attempt.revision : undefined;
}

/** Restarts the progress deadline, because the rollout could make no progress while it was held. */
function goingOn(facts: RolloutFacts): ContainerServiceStatus {
  const status = statusOf(facts);
  if (status.attempt?.state !== AttemptState.PROGRESSING) return status;
  return { ...status, attempt: { ...status.attempt, progressedAt: toTimestamp(facts.nowMs) } };
}

/** Returns the newest successful revision before the effective one with different pods. */
function earlier(facts: RolloutFacts): RevisionRecord {
  const number = backTo(facts) || (facts.status?.attempt?.revision ?? 0);
  const effective = facts.revisions.find((revision) => revision.number === number);
  const effect = effective && effectOf(effective);
  const past = facts.revisions.filter(
    (revision) => revision.number < number && effectOf(revision) !== effect,
  );
  const found = lastGood(past, { number });
  if (found !== undefined) return found;
  const why = `has no revision before ${number} that succeeded and differs from it`;
  const rest = past.length === 0 ? "" : `; to return to a revision that did not succeed, set --to-revision`;
  throw refusal(facts, why + rest);
}

/** Returns the versions of objects that the revision's pods had and that are no longer the newest. */
function pinsFor({ objectVersions }: RevisionRecord, { newestVersion }: RolloutFacts): Pins {
  const pins = Object.entries(objectVersions).map(([name, version]) => {
    return [name, { version, insteadOf: newestVersion(name) }] as const;
  });
  return Object.fromEntries(pins.filter(([, { version, insteadOf }]) => version !== insteadOf));
}

function pinsText(names: readonly string[]): string {
  if (names.length === 0) return "";
  const shown = names.slice(0, MAX_NAMED).join(", ");
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
  return `, with ${shown}${more} at its versions until they change again`;
}

/** The largest number of names in the message. */
const MAX_NAMED = 5;

function numbered(number: number, facts: RolloutFacts): RevisionRecord {
  const found = facts.revisions.find((revision) => revision.number === number);
  if (found !== undefined) return found;
  const kept = facts.revisions.map((revision) => revision.number).join(", ");
  throw new CoordinatorError("NOT_FOUND", `${nameOf(facts)} has no revision ${number}; it has ${kept}`);
}

/** Returns the revision to which the workload was rolled back. 0: it was not. */
function backTo({ entry, status }: RolloutFacts): number {
  return (entry.applied && rolloutAttemptAt(status, entry.record, entry.applied)?.rolledBackTo) ?? 0;
}

function statusOf({ status }: RolloutFacts): ContainerServiceStatus {
  return status ?? ContainerServiceStatus.fromPartial({});
}

function refusal(facts: RolloutFacts, why: string): CoordinatorError {
  return new CoordinatorError("FAILED_PRECONDITION", `${nameOf(facts)} ${why}`);
}

function nameOf({ entry }: RolloutFacts): string {
  return `${entry.record.kind}/${entry.record.name}`;
}
