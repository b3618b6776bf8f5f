import type { CronJobState } from "@forage/proto/forage/operator/v1/operator";
import { cronInput, scheduleFor } from "../../control/cron/cron-input.ts";
import { isActive } from "../../control/cron/plan.ts";
import { cronJobOf } from "../../model/cron-job.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";

/** Returns the state of a cron job. Undefined if the resource is no cron job. */
export function cronView(
  state: ClusterView,
  { record }: ResourceEntry,
  nowMs: number,
): CronJobState | undefined {
  const cron = cronJobOf(record);
  if (cron === undefined) return undefined;
  const { runs, status } = cronInput(workloadKey(record.namespace, record.kind, record.name), nowMs, state);
  const nextMs = cron.suspended ? undefined : scheduleFor(cron).next(nowMs);
  return {
    schedule: cron.schedule,
    timezone: cron.timeZone,
    suspended: cron.suspended,
    active: runs.filter(isActive).map(({ entry }) => entry.record.name),
    lastScheduledAt: status?.lastScheduledAt,
    lastSuccessfulAt: status?.lastSuccessfulAt,
    nextAt: nextMs === undefined ? undefined : toTimestamp(nextMs),
  };
}
