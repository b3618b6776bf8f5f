import type { JobStatus, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import type { JobConfig } from "@forage/proto/forest/v1/forage";
import { resourceKey, workloadStatusKey } from "../../coordinator/src/model/keys.ts";
import type { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import type { Change, PodEntry } from "../../coordinator/src/state/entries.ts";
import type { Blame } from "./violation.ts";

/** Rules for jobs: exactly their completions, each index once, and never more pods at a time than their parallelism. */
export class JobRules {
  readonly #blame: Blame;
  readonly #state: ClusterView;
  /**
   * The pods of each run that have succeeded on their hosts. The records may lag behind this, but never be ahead of it.
   */
  readonly #done = new Map<string, Set<string>>();
  readonly #runs = new Map<string, { readonly run: string; readonly index: number | undefined }>();

  constructor(state: ClusterView, blame: Blame) {
    this.#state = state;
    this.#blame = blame;
  }

  check(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === "workload-status") {
        const before = jobOf(change.before?.record.status);
        const after = jobOf(change.after?.record.status);
        const record = (change.after ?? change.before)?.record;
        if (after !== undefined && record !== undefined)
          this.#checkStatus(record.namespace, record.name, before, after);
      }
      if (change.type !== "pod" || change.after === undefined) continue;
      const { record } = change.after;
      if (record.job === undefined) continue;
      this.#runs.set(record.uid, { run: record.job.run, index: record.job.index });
      if (change.before === undefined) this.#checkNew(change.after);
      if (
        (change.before?.record.job?.counted ?? "") !== "" &&
        change.before?.record.job?.counted !== record.job.counted
      )
        this.#blame(
          `pod ${record.name} was counted as ${change.before?.record.job?.counted} and is ${record.job.counted || "not"} now`,
        );
    }
  }

  /** Called when a host reports that a pod has ended. */
  ended(uid: string, exitCode: number): void {
    const of = this.#runs.get(uid);
    if (of === undefined || exitCode !== 0) return;
    const done = this.#done.get(of.run) ?? new Set();
    this.#done.set(of.run, done.add(uid));
  }

  #checkStatus(namespace: string, name: string, before: JobStatus | undefined, after: JobStatus): void {
    const desired = completionsOf(this.#configOf(namespace, name));
    const counted = before?.run === after.run ? before.succeeded : 0;
    // An apply may ask for fewer completions than were counted.
    if (desired !== undefined && after.succeeded > Math.max(desired, counted))
      this.#blame(`job ${name} has ${after.succeeded} completions, ${desired} are desired`);
    const really = this.#done.get(after.run)?.size ?? 0;
    if (after.succeeded > really)
      this.#blame(`job ${name} counts ${after.succeeded} completions, and ${really} pods have ended well`);
    if (after.condition === "Complete" && desired !== undefined && after.succeeded < desired)
      this.#blame(`job ${name} is complete with ${after.succeeded} of ${desired}`);
    if (before?.run !== after.run) return;
    if (after.succeeded < before.succeeded) this.#blame(`job ${name} has lost a completion`);
    if (before.condition !== "" && before.condition !== after.condition)
      this.#blame(`job ${name} was ${before.condition} and is ${after.condition || "going on"}`);
  }

  #checkNew({ record, workloadKey }: PodEntry): void {
    const { namespace, workloadName, job } = record;
    const config = this.#configOf(namespace, workloadName);
    const stored = this.#state.workloadStatuses.get(workloadStatusKey(namespace, "job", workloadName));
    const status = jobOf(stored?.record.status);
    if (job === undefined || config === undefined || status?.run !== job.run) return;
    const open = this.#state
      .podsOfWorkload(workloadKey)
      .filter(
        (pod) =>
          pod.record.job?.run === job.run &&
          pod.record.job.counted === "" &&
          pod.record.stoppingSince === undefined,
      );
    const atOnce = config.parallelism || 1;
    if (open.length > atOnce)
      this.#blame(`job ${workloadName} runs ${open.length} pods, ${atOnce} at a time are desired`);
    const desired = completionsOf(config);
    if (desired !== undefined && open.length + status.succeeded > desired)
      this.#blame(
        `job ${workloadName} has ${status.succeeded} completions and runs ${open.length} pods, ${desired} are desired`,
      );
    const twice = open.filter((pod) => job.index !== undefined && pod.record.job?.index === job.index);
    if (twice.length > 1) this.#blame(`job ${workloadName} runs index ${job.index} twice`);
  }

  #configOf(namespace: string, name: string): JobConfig | undefined {
    const spec = this.#state.resource(resourceKey(namespace, "job", name))?.record.resource?.spec;
    return spec?.$case === "job" ? spec.value.jobConfig : undefined;
  }
}

function completionsOf(config: JobConfig | undefined): number | undefined {
  if (config === undefined) return undefined;
  return config.completions || ((config.parallelism || 1) === 1 ? 1 : undefined);
}

export function jobOf(status: WorkloadStatusRecord["status"] | undefined): JobStatus | undefined {
  return status?.$case === "job" ? status.value : undefined;
}
