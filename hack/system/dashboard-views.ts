import type { View } from "./dashboard-tour.ts";
import { HOSTNAME } from "./dashboard-world.ts";

/**
 * Returns every page of the dashboard with its expected content. `pod` is one of the workload web, and `job` a run of
 * tick.
 */
export function dashboardViews(pod: string, job: string): readonly View[] {
  const resource = (name: string, kind: string, own: string, text?: View["text"], tab = "") => ({
    ...{ name, address: `resources/e2e/${kind}/${own}${tab}`, heading: own },
    ...(text !== undefined && { text }),
  });
  return [
    { name: "fleet", address: "fleet", heading: "Fleet", text: "cellar", onPhone: true },
    { name: "node", address: "nodes/n1", heading: "n1", text: "Last heartbeat" },
    { name: "workloads", address: "workloads", heading: "Workloads", text: "broken" },
    resource("workload", "container_service", "web", "Rollout"),
    resource("failing", "container_service", "broken", "no beans"),
    {
      ...resource("autoscaled", "container_service", "scaled", "1 now, 1 desired"),
      graph: /^Replicas: current 1, desired 1 now$/,
    },
    resource("revisions", "container_service", "web", "effective", "?tab=revisions"),
    resource("manifest", "container_service", "web", "containerPort", "?tab=manifest"),
    resource("resource-events", "container_service", "web", /Pods|Rollout[A-Z]/, "?tab=events"),
    { name: "pods", address: "pods", heading: "Pods", text: "4 ready" },
    { name: "pod-page", address: `pods/e2e/${pod}`, heading: pod, text: "UID" },
    { name: "pod-events", address: `pods/e2e/${pod}?tab=events`, heading: pod, text: "Scheduled" },
    { name: "jobs", address: "jobs", heading: "Jobs", text: "1/1 done" },
    resource("cron-job", "cron_job", "tick", "Last success"),
    resource("job", "job", job, "Why"),
    { name: "network", address: "network", heading: "Network", text: HOSTNAME },
    resource("service", "service", "web", "Why"),
    resource("route", "route", "shop", "Programmed"),
    { name: "secrets", address: "config", heading: "Secrets and configuration", text: "password" },
    { name: "events", address: "events", heading: "Events", text: /^(pod|container_service)\// },
    { name: "no-page", address: "nowhere", heading: "There is no such page" },
  ];
}
