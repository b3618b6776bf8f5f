import { CronJobStatus, type JobStatus, type ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import type { CronJob } from "../../model/cron-job.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { runName } from "./run-resource.ts";
import type { Schedule } from "./schedule.ts";

/** A job that the cron job has created. */
export interface CronRun {
  readonly entry: ResourceEntry;
  /** The status of the job's current run. Undefined before it begins. */
  readonly status: JobStatus | undefined;
  /** Whether pods of the run are stopping on reachable nodes. */
  readonly stopping: boolean;
}

export interface CronInput {
  /** The cron job. Undefined: its record is removed, but runs are left. */
  readonly resource: ResourceEntry | undefined;
  readonly cron: CronJob | undefined;
  readonly schedule: Schedule | undefined;
  readonly status: CronJobStatus | undefined;
  readonly runs: readonly CronRun[];
  /** Reports whether a job of this name exists. */
  readonly taken: (name: string) => boolean;
  /** The reason why the namespace's policy rejects the pods. Undefined: it accepts them. */
  readonly refusal?: string | undefined;
  /** Returns the reason why the namespace's quota has no room for the run. Undefined: it has room. */
  readonly quotaRefusal?: ((name: string, scheduledMs: number) => string | undefined) | undefined;
  readonly nowMs: number;
}

/** Enforces the namespace's quota for runs of cron jobs. */
export interface RunQuota {
  /**
   * Runs a check together with the write that it permits under the namespace's lock, so that concurrent requests can't
   * exceed the quota.
   */
  inTurn<T>(namespace: string, task: () => Promise<T>): Promise<T>;
  /** Returns the reason why the quota has no room for the run. Undefined: it has room. */
  runRefusal(owner: ResourceRecord, run: ForageResource): string | undefined;
}

/** A step for one cron job. A dry run prints the same objects. */
export type CronStep =
  /** Creates the run and updates the cron job's status in one transaction, so that no due time is run twice. */
  | {
      readonly type: "start-run";
      readonly name: string;
      readonly scheduledMs: number;
      readonly status: CronJobStatus;
      readonly why: string;
    }
  | {
      readonly type: "skip-run";
      readonly status: CronJobStatus;
      readonly why: string;
      /** Whether the namespace's policy rejects the run. */
      readonly refused?: boolean;
    }
  | { readonly type: "miss-runs"; readonly status: CronJobStatus; readonly why: string }
  | { readonly type: "write-status"; readonly status: CronJobStatus; readonly why: string }
  | { readonly type: "remove-run"; readonly run: CronRun; readonly why: string; readonly replaced: boolean }
  /** Deletes the record of a deleted cron job after its last run is gone. */
  | { readonly type: "forget-resource" };

/** If the last decision is this far in the future, the clock was wrong when it was made, so it is ignored. */
const CLOCK_JUMP_MS = 3_600_000;
/**
 * The limit of active runs. Each is a job with pods: a schedule whose runs take longer than their interval must not fill
 * the store.
 */
export const MAX_ACTIVE_RUNS = 100;
/** The limit up to which missed runs are counted. */
const MAX_COUNTED = 100;

/**
 * Returns the next steps: starts the newest due run, at most one, and removes finished runs beyond the history limits.
 * Pure.
 */
export function planCron(input: CronInput): CronStep[] {
  const { resource, cron, schedule, runs, nowMs } = input;
  if (resource === undefined || cron === undefined || schedule === undefined || resource.record.deleting) {
    const open = runs.filter(({ entry }) => !entry.record.deleting);
    const why = "its cron job was deleted";
    const steps = open.map((run): CronStep => ({ type: "remove-run", run, why, replaced: false }));
    return resource !== undefined && runs.length === 0 ? [{ type: "forget-resource" }] : steps;
  }
  const status = statusOf(input, cron);
  if (status.why !== undefined) return [{ type: "write-status", status: status.now, why: status.why }];
  const dueMs = cron.suspended ? undefined : schedule.last(nowMs);
  const isDue = dueMs !== undefined && dueMs > (toEpochMs(status.now.decidedUntil) ?? 0);
  const old = history(runs, cron);
  return isDue ? [...old, ...decide(dueMs, status.now, cron, schedule, input)] : old;
}

/** Returns the time at which the next step may change without an event. Undefined: never. */
export function nextCronEvaluationMs({
  cron,
  schedule,
  resource,
  status,
  nowMs,
}: CronInput): number | undefined {
  if (cron === undefined || cron.suspended || resource?.record.deleting) return undefined;
  return schedule?.next(Math.max(nowMs, toEpochMs(status?.decidedUntil) ?? 0));
}

export function isActive({ entry, status }: CronRun): boolean {
  return !entry.record.deleting && (status?.condition ?? "") === "";
}

/** Returns the status before any decision. `why` is set if the status has to be written first. */
function statusOf(
  { resource, status, runs, nowMs }: CronInput,
  cron: CronJob,
): { readonly now: CronJobStatus; readonly why?: string } {
  const appliedMs = Math.min(toEpochMs(resource?.record.updatedAt) ?? nowMs, nowMs);
  const base = status ?? CronJobStatus.fromPartial({});
  const { suspended } = cron;
  if (base.schedule !== cron.scheduleId) {
    const fresh = { ...base, schedule: cron.scheduleId, suspended, replacingFor: undefined };
    return { now: { ...fresh, decidedUntil: toTimestamp(appliedMs) }, why: "a new schedule" };
  }
  if (base.suspended && !suspended)
    return { now: { ...base, suspended, decidedUntil: toTimestamp(nowMs) }, why: "resumed" };
  if (!base.suspended && suspended)
    return { now: { ...base, suspended, replacingFor: undefined }, why: "suspended" };
  if ((toEpochMs(base.decidedUntil) ?? 0) > nowMs + CLOCK_JUMP_MS)
    return { now: { ...base, decidedUntil: toTimestamp(nowMs) }, why: "the clock was set back" };
  const doneMs = Math.max(
    ...runs.map((run) =>
      run.status?.condition === "Complete" ? (toEpochMs(run.status.finishedAt) ?? 0) : 0,
    ),
  );
  if (doneMs > (toEpochMs(base.lastSuccessfulAt) ?? 0))
    return { now: { ...base, lastSuccessfulAt: toTimestamp(doneMs) }, why: "a run is complete" };
  return { now: base };
}

function decide(
  dueMs: number,
  status: CronJobStatus,
  cron: CronJob,
  schedule: Schedule,
  { runs, taken, refusal, quotaRefusal, nowMs }: CronInput,
): CronStep[] {
  const decided = { ...status, decidedUntil: toTimestamp(dueMs), replacingFor: undefined };
  const time = new Date(dueMs).toISOString();
  // A run that replaces another starts when that one has stopped, even after its starting deadline.
  const replacing = toEpochMs(status.replacingFor) === dueMs;
  const late = cron.startingDeadlineMs !== undefined && nowMs - dueMs > cron.startingDeadlineMs;
  const missed = missedBefore(dueMs, status, schedule);
  if (late && !replacing) {
    const seconds = (cron.startingDeadlineMs ?? 0) / 1000;
    const others = missed === 0 ? "" : `, nor were ${atLeast(missed)} before it`;
    const why = `the run of ${time} was not started within ${seconds} s${others}`;
    return [{ type: "miss-runs", status: decided, why }];
  }
  const name = runName(cron, dueMs);
  if (taken(name)) {
    const why = `the run of ${time} is not started: another job has the name "${name}"`;
    return [{ type: "skip-run", status: decided, why }];
  }
  if (refusal !== undefined)
    return [
      {
        type: "skip-run",
        status: decided,
        why: `the run of ${time} is not started: ${refusal}`,
        refused: true,
      },
    ];
  const active = runs.filter(isActive);
  if (active.length > 0 && cron.concurrency === "Forbid") {
    const why = `the run of ${time} is not started: ${active[0]?.entry.record.name} is still active`;
    return [{ type: "skip-run", status: decided, why }];
  }
  if (active.length >= MAX_ACTIVE_RUNS) {
    const why = `the run of ${time} is not started: ${active.length} runs are active, which is the limit`;
    return [{ type: "skip-run", status: decided, why }];
  }
  if (cron.concurrency === "Replace" && (active.length > 0 || runs.some(({ stopping }) => stopping)))
    return replace(dueMs, active, status);
  const excess = quotaRefusal?.(name, dueMs);
  if (excess !== undefined)
    return [{ type: "skip-run", status: decided, why: `the run of ${time} is not started: ${excess}` }];
  const others = missed === 0 ? "" : `; ${atLeast(missed)} before it were missed`;
  const why = `it was due at ${time}${others}`;
  return [
    {
      type: "start-run",
      name,
      scheduledMs: dueMs,
      status: { ...decided, lastScheduledAt: toTimestamp(dueMs) },
      why,
    },
  ];
}

/** Stops the active run. The new run starts after it has stopped. */
function replace(dueMs: number, active: readonly CronRun[], status: CronJobStatus): CronStep[] {
  const why = `the run of ${new Date(dueMs).toISOString()} replaces it`;
  const removals = active.map((run): CronStep => ({ type: "remove-run", run, why, replaced: true }));
  if (toEpochMs(status.replacingFor) === dueMs) return removals;
  const now = { ...status, replacingFor: toTimestamp(dueMs) };
  return [...removals, { type: "write-status", status: now, why: "the active run is replaced" }];
}

/** Returns the number of undecided due times before this one, counted up to the limit. */
function missedBefore(dueMs: number, { decidedUntil }: CronJobStatus, schedule: Schedule): number {
  let count = 0;
  for (let ms = toEpochMs(decidedUntil) ?? dueMs; count < MAX_COUNTED; count++) {
    const next = schedule.next(ms);
    if (next === undefined || next >= dueMs) break;
    ms = next;
  }
  return count;
}

function atLeast(count: number): string {
  return count >= MAX_COUNTED ? `${count} or more` : `${count}`;
}

/** Returns the removals of finished runs beyond the history limits, the oldest first. */
function history(runs: readonly CronRun[], cron: CronJob): CronStep[] {
  const over = (condition: string, kept: number): CronStep[] =>
    runs
      .filter(({ entry, status }) => !entry.record.deleting && status?.condition === condition)
      .sort((a, b) => (toEpochMs(b.status?.finishedAt) ?? 0) - (toEpochMs(a.status?.finishedAt) ?? 0))
      .slice(kept)
      .map((run) => ({ type: "remove-run", run, why: `${kept} newer ones are kept`, replaced: false }));
  return [...over("Complete", cron.keptSucceeded), ...over("Failed", cron.keptFailed)];
}
