import { resourceKey, workloadStatusKey } from "../../coordinator/src/model/keys.ts";
import { toEpochMs } from "../../coordinator/src/model/timestamp.ts";
import type { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import type { Change, ResourceEntry } from "../../coordinator/src/state/entries.ts";
import { jobOf } from "./job-rules.ts";
import type { Blame } from "./violation.ts";

// An hour, less the difference between the clocks of two lives of the coordinator.
const FOLLOWED_STEP_MS = 3_600_000 - 5_000;

/**
 * Rules for runs of cron jobs: each scheduled time runs at most once, there are no bursts, and no runs overlap where
 * that is forbidden.
 */
export class CronRules {
  readonly #blame: Blame;
  readonly #state: ClusterView;
  /** The latest time that was run, by namespace, cron job and the start of its schedule. */
  readonly #latest = new Map<string, number>();
  #clockMs = 0;
  #highestClockMs = 0;

  constructor(state: ClusterView, blame: Blame) {
    this.#state = state;
    this.#blame = blame;
  }

  /**
   * Records that the clock was set. After a step back of more than an hour, schedules follow the new time, and past
   * times are due again.
   */
  clockSet(byMs: number): void {
    this.#clockMs += byMs;
    this.#highestClockMs = Math.max(this.#highestClockMs, this.#clockMs);
    if (this.#highestClockMs - this.#clockMs <= FOLLOWED_STEP_MS) return;
    this.#latest.clear();
    this.#highestClockMs = this.#clockMs;
  }

  check(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type !== "resource" || change.before !== undefined || change.after === undefined) continue;
      if (change.after.record.owner?.kind === "cron_job") this.#checkRun(change.after);
    }
  }

  #checkRun(run: ResourceEntry): void {
    const wrong = this.#whatIsWrong(run);
    if (wrong !== undefined) this.#blame(`run ${run.record.name} was started ${wrong}`);
  }

  #whatIsWrong({ record }: ResourceEntry): string | undefined {
    const { namespace, name, owner } = record;
    const cron = this.#state.resource(resourceKey(namespace, "cron_job", owner?.name ?? ""));
    const spec = cron?.record.resource?.spec;
    if (cron === undefined || spec?.$case !== "cronJob") return "for no cron job";
    if (cron.record.deleting) return "for a cron job that is being deleted";
    const scheduledMs = toEpochMs(owner?.scheduledFor);
    if (scheduledMs === undefined) return undefined;
    if (spec.value.suspend) return "for a cron job that is suspended";
    const key = `${cron.key} ${toEpochMs(cron.record.createdAt)}`;
    const before = this.#latest.get(key) ?? 0;
    this.#latest.set(key, Math.max(before, scheduledMs));
    if (scheduledMs <= before) return "after a run of that time or a later one";
    const beside = this.#state
      .resources(namespace)
      .filter((other) => other.record.name !== name && this.#goesOn(other, owner?.name));
    if (spec.value.concurrencyPolicy === "Allow" || beside.length === 0) return undefined;
    return `beside ${beside.map((other) => other.record.name).join(", ")}`;
  }

  #goesOn({ record }: ResourceEntry, cron: string | undefined): boolean {
    if (record.owner?.kind !== "cron_job" || record.owner.name !== cron || record.deleting) return false;
    const key = workloadStatusKey(record.namespace, "job", record.name);
    return (jobOf(this.#state.workloadStatuses.get(key)?.record.status)?.condition ?? "") === "";
  }
}
