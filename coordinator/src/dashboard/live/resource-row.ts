import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { toEpochMs } from "../../model/timestamp.ts";
import type { ResourceRow, Tone } from "./rows.ts";

/** The length limit of a message in a row. The page of the resource shows it in full. */
const MAX_MESSAGE_CHARACTERS = 200;
const MAX_HOSTNAMES = 3;

/** The reasons why the rollout of a container service is on hold. */
export interface RolloutHold {
  readonly paused: boolean;
  readonly canary: boolean;
}

export function resourceRow(resource: Resource, hold?: RolloutHold): ResourceRow {
  const { namespace, kind, name, autoscaling } = resource;
  const nextMs = toEpochMs(resource.cronJob?.nextAt);
  const scaled = autoscaling && {
    min: autoscaling.minReplicas,
    max: autoscaling.maxReplicas,
    current: autoscaling.currentReplicas,
    desired: autoscaling.desiredReplicas,
    reason: autoscaling.reason,
  };
  return {
    ...{ namespace, kind, name },
    tone: toneOf(resource),
    message: messageOf(resource).slice(0, MAX_MESSAGE_CHARACTERS),
    replicas: resource.replicas,
    updated: resource.updatedReplicas,
    ready: resource.readyReplicas,
    endpoints: resource.readyEndpoints,
    image: imageOf(resource.spec?.spec),
    owner: resource.owner,
    rolloutId: resource.rolloutId,
    generation: Number(resource.generation),
    updatedMs: toEpochMs(resource.updatedAt) ?? 0,
    deleting: resource.deleting,
    about: aboutOf(resource),
    ...(nextMs !== undefined && { nextMs }),
    ...(hold?.paused && { paused: true }),
    ...(hold?.canary && { canary: true }),
    ...(scaled && { autoscaling: scaled }),
  };
}

function toneOf({
  kind,
  deleting,
  message,
  replicas,
  readyReplicas,
  readyEndpoints,
  job,
  route,
}: Resource): Tone {
  if (deleting) return "off";
  if (job !== undefined) return job.condition === "Failed" ? "bad" : job.condition === "" ? "busy" : "off";
  if (kind === "cron_job") return message === "" ? "good" : "bad";
  if (kind === "service") return readyEndpoints > 0 && message === "" ? "good" : "bad";
  if (kind === "route") return route?.conditions.every(isFulfilled) === true ? "good" : "bad";
  if (replicas === 0) return "off";
  if (readyReplicas >= replicas) return "good";
  return readyReplicas === 0 && message !== "" ? "bad" : "busy";
}

/**
 * Reports whether a condition is good. "Conflicted" is the only condition that is bad when true.
 */
function isFulfilled({ type, status }: { readonly type: string; readonly status: boolean }): boolean {
  return type === "Conflicted" ? !status : status;
}

function messageOf({ message, job, route }: Resource): string {
  if (message !== "") return message;
  if (job !== undefined && job.message !== "") return job.message;
  return route?.conditions.find((condition) => !isFulfilled(condition))?.message ?? "";
}

function imageOf(spec: ForageResource["spec"]): string {
  switch (spec?.$case) {
    case "containerService":
    case "job":
    case "cronJob":
      return spec.value.container?.image ?? "";
    default:
      return "";
  }
}

function aboutOf({ job, cronJob, route, virtualIps, nodePorts, loadBalancerIps }: Resource): string {
  if (job !== undefined)
    return `${job.succeeded}/${job.completions} done${job.failed > 0 ? `, ${job.failed} failed` : ""}`;
  if (cronJob !== undefined) return cronJob.suspended ? "suspended" : cronJob.schedule;
  if (route !== undefined) {
    const names = route.hostnames.map(({ hostname }) => hostname);
    const more = names.length > MAX_HOSTNAMES ? ` and ${names.length - MAX_HOSTNAMES} more` : "";
    return `${names.slice(0, MAX_HOSTNAMES).join(", ")}${more}`;
  }
  return [...loadBalancerIps, ...virtualIps, ...nodePorts.map(({ nodePort }) => `:${nodePort}`)].join(" ");
}
