import { type CronJob, cronJobOf } from "../../model/cron-job.ts";
import { resourceKey, workloadStatusKey } from "../../model/keys.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { jobStatusOf } from "../job/job-input.ts";
import type { KnownSchedules } from "./known-schedules.ts";
import type { CronInput, CronRun } from "./plan.ts";
import { type Schedule, scheduleOf } from "./schedule.ts";

/**
 * Returns the input for planning a cron job with the key `namespace/cron_job/name`. Without `schedules`, its schedule is
 * parsed.
 */
export function cronInput(
  key: string,
  nowMs: number,
  state: ClusterView,
  schedules?: KnownSchedules,
): CronInput {
  const [namespace = "", kind = "", name = ""] = key.split("/");
  const resource = state.resource(resourceKey(namespace, kind, name));
  const cron = resource && cronJobOf(resource.record);
  const status = state.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record.status;
  return {
    resource,
    cron,
    schedule: cron && (schedules?.of(resource.record, cron) ?? scheduleFor(cron)),
    status: status?.$case === "cronJob" ? status.value : undefined,
    runs: state.resourcesOwnedBy(namespace, kind, name).map((entry) => runOf(entry, state)),
    taken: (job) => state.resource(resourceKey(namespace, "job", job)) !== undefined,
    nowMs,
  };
}

export function scheduleFor({ schedule, timeZone }: CronJob): Schedule {
  return scheduleOf(schedule, timeZone);
}

function runOf(entry: ResourceEntry, state: ClusterView): CronRun {
  const { namespace, name, deleting } = entry.record;
  const stored = jobStatusOf(state, namespace, name);
  const pods = state.podsOfWorkload(workloadKey(namespace, "job", name));
  const isHeard = (node: string): boolean => node === "" || (state.node(node)?.health.ready ?? false);
  return {
    entry,
    status: stored?.run === state.jobs.of(entry.record, stored?.run)?.run ? stored : undefined,
    stopping: deleting && pods.some(({ record }) => isHeard(record.node)),
  };
}
