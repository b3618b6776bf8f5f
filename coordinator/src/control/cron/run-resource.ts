import { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { ForageResource, PodConfig } from "@forage/proto/forest/v1/forage";
import type { CronJob } from "../../model/cron-job.ts";
import { hashLabels, hashMessage } from "../../model/hash.ts";
import { toTimestamp } from "../../model/timestamp.ts";

/** Kubernetes' annotation for the scheduled time of a run. */
const SCHEDULED_KEY = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/** Returns the name of the run. The same scheduled time gives the same name, so that no time is run twice. */
export function runName(cron: Pick<CronJob, "name">, scheduledMs: number): string {
  return `${cron.name}-${Math.floor(scheduledMs / 60_000)}`;
}

/** Returns the job of a run. `scheduledMs` is undefined for a run that was started by hand. Pure. */
export function runResource(
  cron: CronJob,
  owner: ResourceRecord,
  name: string,
  scheduledMs: number | undefined,
  nowMs: number,
): ResourceRecord {
  const { podConfig } = cron.job;
  const annotations = {
    ...podConfig?.annotations,
    ...(scheduledMs !== undefined && { [SCHEDULED_KEY]: new Date(scheduledMs).toISOString() }),
  };
  const spec = { ...cron.job, podConfig: { ...(podConfig ?? PodConfig.fromPartial({})), annotations } };
  const resource: ForageResource = { name, spec: { $case: "job", value: spec } };
  return ResourceRecord.fromPartial({
    namespace: cron.namespace,
    kind: "job",
    name,
    labels: owner.labels,
    resource,
    specHash: hashMessage(ForageResource, resource, hashLabels(owner.labels)),
    generation: 1n,
    createdAt: toTimestamp(nowMs),
    updatedAt: toTimestamp(nowMs),
    order: owner.order,
    policyRole: owner.policyRole,
    owner: {
      kind: "cron_job",
      name: cron.name,
      scheduledFor: scheduledMs === undefined ? undefined : toTimestamp(scheduledMs),
    },
  });
}
