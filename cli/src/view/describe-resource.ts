import type { Endpoint, GetRolloutResponse, Pod, Resource } from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { renderDocument } from "../output/document.ts";
import type { Paint } from "../output/paint.ts";
import { renderEntries, renderSection } from "../output/sections.ts";
import { renderTable } from "../output/table.ts";
import { statusWord } from "../rollout/outcome.ts";
import { endedText, summarize } from "../rollout/summary.ts";
import { describeAutoscaling } from "./autoscaling.ts";
import { endpointColumns } from "./endpoints.ts";
import { describeCronJob, describeJob } from "./jobs.ts";
import { labelText } from "./nodes.ts";
import { podColumns } from "./pods.ts";
import { readiness } from "./resources.ts";
import { describeRoute } from "./routes.ts";
import { age, dateTime } from "./timestamp.ts";

/** A resource and the objects that belong to it. */
export interface ResourceDetail {
  readonly resource: Resource;
  readonly pods: readonly Pod[];
  readonly endpoints: readonly Endpoint[];
  readonly rollout: GetRolloutResponse | undefined;
}

export function describeResource(
  { resource, pods, endpoints, rollout }: ResourceDetail,
  nowMs: number,
  paint: Paint,
): string {
  const { kind, name } = resource;
  const head = renderEntries(
    [
      ["Kind", kind],
      ["Name", name],
      ["Namespace", resource.namespace],
      ["Labels", labelText(resource.labels)],
      [kind === "service" ? "Endpoints" : "Ready", readiness(resource)],
      ["Virtual IP", resource.virtualIps.join(", ")],
      ["Node ports", nodePortsText(resource)],
      ["Load balancer", balancerText(resource)],
      ["Owner", resource.owner],
      ["Message", resource.message],
      ["Generation", String(resource.generation)],
      ["Created", `${dateTime(resource.createdAt)} (${age(resource.createdAt, nowMs)} ago)`],
      ["Changed", `${dateTime(resource.updatedAt)} (${age(resource.updatedAt, nowMs)} ago)`],
      ["Rollout", rollout === undefined ? resource.rolloutId : rolloutText(rollout, kind, name, nowMs)],
    ],
    paint,
  );
  const podTable = renderTable(podColumns({ nowMs, withNamespace: false }), pods, { wide: false, paint });
  const endpointTable = renderTable(endpointColumns(false), endpoints, { wide: false, paint });
  const spec =
    resource.spec === undefined ? "" : renderDocument("yaml", ForageResource.toJSON(resource.spec));
  return (
    head +
    renderSection("Job", describeJob(resource, nowMs, paint), paint) +
    renderSection("Cron job", describeCronJob(resource.cronJob, paint), paint) +
    renderSection("Autoscaling", describeAutoscaling(resource.autoscaling, nowMs, paint), paint) +
    describeRoute(resource.route, paint) +
    renderSection("Pods", pods.length === 0 ? "" : podTable, paint) +
    renderSection("Endpoints", endpoints.length === 0 ? "" : endpointTable, paint) +
    renderSection("Spec", spec, paint)
  );
}

function balancerText({ loadBalancerIps, announcedBy }: Resource): string {
  if (loadBalancerIps.length === 0) return "";
  return `${loadBalancerIps.join(", ")}, ${announcedBy === "" ? "announced by no node" : `announced by ${announcedBy}`}`;
}

function nodePortsText({ nodePorts }: Resource): string {
  return nodePorts.map(({ port, protocol, nodePort }) => `${nodePort} → ${port}/${protocol}`).join(", ");
}

/** Describes the rollout's state, with its message about this resource. */
function rolloutText(rollout: GetRolloutResponse, kind: string, name: string, nowMs: number): string {
  const own = rollout.resources.find((resource) => resource.kind === kind && resource.name === name);
  const message =
    own === undefined || own.message === "" ? "" : `\n${statusWord(own.status)}: ${own.message}`;
  return `${summarize(rollout)}${endedText(rollout, nowMs)}${message}`;
}
