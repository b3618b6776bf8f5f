import { listedNamespace, useApp } from "../data/app.ts";
import { EventList } from "../parts/event-list.tsx";
import { Head } from "../parts/pieces.tsx";

export function EventsPage() {
  const namespace = listedNamespace(useApp());
  return (
    <>
      <Head
        title="Events"
        about={namespace === "" ? "All namespaces and nodes, newest first" : `Namespace ${namespace}`}
      />
      <EventList namespace={namespace} />
    </>
  );
}
