import type { ComponentChild } from "preact";
import { href, type PageLocation } from "./data/location.ts";
import { ConfigPage } from "./pages/config.tsx";
import { EventsPage } from "./pages/events.tsx";
import { FleetPage } from "./pages/fleet.tsx";
import { JobsPage } from "./pages/jobs.tsx";
import { NetworkPage } from "./pages/network.tsx";
import { NodePage } from "./pages/node.tsx";
import { PlanPage } from "./pages/plan.tsx";
import { PodPage } from "./pages/pod.tsx";
import { PodsPage } from "./pages/pods.tsx";
import { ResourcePage } from "./pages/resource.tsx";
import { WorkloadsPage } from "./pages/workloads.tsx";
import { WorkspacesPage } from "./pages/workspaces.tsx";
import { Head } from "./parts/pieces.tsx";

interface Page {
  /** The first segment of the page's address. */
  readonly name: string;
  readonly title: string;
  readonly show: (place: PageLocation) => ComponentChild;
}

/** The pages, in the order of the navigation. */
export const PAGES: readonly Page[] = [
  { name: "fleet", title: "Fleet", show: () => <FleetPage /> },
  { name: "workloads", title: "Workloads", show: () => <WorkloadsPage /> },
  { name: "pods", title: "Pods", show: () => <PodsPage /> },
  { name: "jobs", title: "Jobs", show: () => <JobsPage /> },
  { name: "network", title: "Network", show: () => <NetworkPage /> },
  {
    name: "config",
    title: "Secrets",
    show: (place) => <ConfigPage key={place.query.get("filter") ?? ""} place={place} />,
  },
  { name: "workspaces", title: "Workspaces", show: () => <WorkspacesPage /> },
  { name: "events", title: "Events", show: () => <EventsPage /> },
  { name: "plan", title: "Plan", show: () => <PlanPage /> },
];

export function pageOf(place: PageLocation): ComponentChild {
  const [name = "fleet", ...rest] = place.path;
  const key = place.path.join("/");
  if (name === "nodes" && rest.length === 1) return <NodePage key={key} place={place} />;
  if (name === "pods" && rest.length === 2) return <PodPage key={key} place={place} />;
  if (name === "resources" && rest.length === 3) return <ResourcePage key={key} place={place} />;
  const page = PAGES.find((each) => each.name === name);
  if (page !== undefined && rest.length === 0) return page.show(place);
  return (
    <>
      <Head title="There is no such page" />
      <p>
        <a href={href("fleet")}>Go to the fleet</a>
      </p>
    </>
  );
}
