import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import type { Style } from "../output/paint.ts";
import type { Column } from "../output/table.ts";
import { completions, jobStyle } from "./jobs.ts";
import { labelText } from "./nodes.ts";
import { hostnamesText, routeStyle, routeWord } from "./routes.ts";
import { age } from "./timestamp.ts";

export function resourceColumns({
  nowMs,
  withNamespace,
}: {
  readonly nowMs: number;
  readonly withNamespace: boolean;
}): Column<Resource>[] {
  const namespace: Column<Resource> = { title: "NAMESPACE", value: (resource) => resource.namespace };
  return [
    ...(withNamespace ? [namespace] : []),
    { title: "KIND", value: ({ kind }) => kind },
    { title: "NAME", value: ({ name }) => name },
    { title: "READY", value: readiness, style: readinessStyle },
    {
      title: "UPDATED",
      value: ({ kind, updatedReplicas }) => (kind === "container_service" ? String(updatedReplicas) : ""),
      alignRight: true,
    },
    { title: "ADDRESS", value: addressText, whenFilled: true },
    { title: "AGE", value: ({ createdAt }) => age(createdAt, nowMs), alignRight: true },
    { title: "CHANGED", value: ({ updatedAt }) => age(updatedAt, nowMs), alignRight: true, wide: true },
    { title: "GENERATION", value: ({ generation }) => String(generation), alignRight: true, wide: true },
    { title: "ROLLOUT", value: ({ rolloutId }) => rolloutId, wide: true },
    { title: "DETAIL", value: specDetail, wide: true },
    { title: "LABELS", value: ({ labels }) => labelText(labels), wide: true },
    { title: "MESSAGE", value: ({ message }) => message, whenFilled: true },
  ];
}

/**
 * Returns `2/3` for a workload's pods, the number of a service's endpoints, the state of a route,
 * or that the resource is being deleted.
 */
export function readiness(resource: Resource): string {
  if (resource.deleting) return "deleting";
  if (resource.kind === "container_service") return `${resource.readyReplicas}/${resource.replicas}`;
  if (resource.job !== undefined) return completions(resource.job);
  return resource.kind === "service" ? String(resource.readyEndpoints) : routeWord(resource);
}

/** Returns the image of a workload, or the target and ports of a service. */
export function specDetail({ spec }: Resource): string {
  const chosen = spec?.spec;
  if (chosen?.$case === "containerService") return chosen.value.container?.image ?? "";
  if (chosen?.$case === "job") return chosen.value.container?.image ?? "";
  if (chosen?.$case === "cronJob") return `${chosen.value.schedule} ${chosen.value.container?.image ?? ""}`;
  if (chosen?.$case !== "service") return "";
  const ports = chosen.value.ports.map(({ port, targetPort }) =>
    targetPort === 0 ? `${port}` : `${port}→${targetPort}`,
  );
  return `${chosen.value.target}:${ports.join(",")}`;
}

/**
 * Returns the address of a service with its node ports (`10.96.3.7 80:30080`) or its external
 * address (`10.96.3.7 outside:192.0.2.50`), or the hostnames of a route.
 */
function addressText(resource: Resource): string {
  const { virtualIps, nodePorts, loadBalancerIps } = resource;
  if (resource.kind === "route") return hostnamesText(resource);
  const open = nodePorts.map(({ port, nodePort }) => `${port}:${nodePort}`);
  return [...virtualIps, ...open, ...loadBalancerIps.map((ip) => `outside:${ip}`)].join(" ");
}

function readinessStyle(resource: Resource): Style | undefined {
  if (resource.deleting) return "busy";
  if (resource.kind === "container_service")
    return resource.readyReplicas >= resource.replicas ? "good" : "busy";
  if (resource.job !== undefined) return jobStyle(resource);
  if (resource.kind === "route") return routeStyle(resource);
  return resource.kind === "service" && resource.readyEndpoints === 0 ? "busy" : undefined;
}
