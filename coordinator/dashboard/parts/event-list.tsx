import { useEffect, useRef, useState } from "preact/hooks";
import { useApp } from "../data/app.ts";
import { followStream } from "../data/follow-stream.ts";
import { ago } from "../data/format.ts";
import { href } from "../data/location.ts";
import type { FleetEvent } from "../data/wire.ts";
import { FilterField, useFilter } from "./filter.tsx";
import { Badge } from "./pieces.tsx";
import { type Column, VirtualTable } from "./virtual-table.tsx";

/** The most events on the page. The coordinator keeps more. */
const MAX_EVENTS = 2_000;
const RETRY_MS = 30_000;

/**
 * Lists events, newest first, of one object or of all objects that the token may see. New events
 * appear automatically.
 */
export function EventList({
  namespace,
  kind = "",
  name = "",
}: {
  readonly namespace: string;
  readonly kind?: string;
  readonly name?: string;
}) {
  const events = useEvents(namespace, kind, name);
  const { rows, text, setText } = useFilter(
    events,
    (event) =>
      `${event.type} ${event.reason} ${event.kind}/${event.name} ${event.namespace} ${event.message}`,
  );
  return (
    <>
      <div class="toolbar">
        <FilterField text={text} setText={setText} label="Filter events" />
      </div>
      <VirtualTable
        label="Events"
        rows={rows}
        columns={COLUMNS}
        keyOf={({ sequence }) => sequence ?? ""}
        hrefOf={placeOf}
        empty="No events."
      />
    </>
  );
}

function useEvents(namespace: string, kind: string, name: string): readonly FleetEvent[] {
  const { notify } = useApp();
  const [events, setEvents] = useState<readonly FleetEvent[]>([]);
  const known = useRef(new Map<string, FleetEvent>());
  useEffect(() => {
    known.current.clear();
    setEvents([]);
    const query = new URLSearchParams({ namespace, kind, name });
    return followStream(`events?${query}`, {
      onMessage: (data) => {
        for (const event of JSON.parse(data) as readonly FleetEvent[]) known.current.set(keyOf(event), event);
        const sorted = [...known.current.values()].sort((a, b) => Number(b.sequence) - Number(a.sequence));
        for (const event of sorted.slice(MAX_EVENTS)) known.current.delete(keyOf(event));
        setEvents(sorted.slice(0, MAX_EVENTS));
      },
      onRefused: () =>
        notify("The stream of events was refused. Choose a namespace that the token covers.", "bad"),
      retryMs: RETRY_MS,
    });
  }, [namespace, kind, name, notify]);
  return events;
}

/** Returns a key that ignores the sequence number, which changes when the event occurs again. */
function keyOf({ namespace, kind, name, reason, message, firstAt }: FleetEvent): string {
  return [namespace, kind, name, reason, message, firstAt].join("\n");
}

const RESOURCE_KINDS: ReadonlySet<string> = new Set([
  "container_service",
  "service",
  "route",
  "job",
  "cron_job",
]);
const OBJECT_KINDS: ReadonlySet<string> = new Set([
  "secret",
  "config_map",
  "registry_credential",
  "claim",
  "priority_class",
]);

/**
 * Returns the address of the object's page; undefined for objects without one, such as a
 * coordinator or a namespace.
 */
export function placeOf({ namespace = "", kind = "", name = "" }: FleetEvent): string | undefined {
  if (kind === "pod") return href("pods", namespace, name);
  if (kind === "node") return href("nodes", name);
  if (RESOURCE_KINDS.has(kind)) return href("resources", namespace, kind, name);
  if (OBJECT_KINDS.has(kind)) return `${href("config")}?${new URLSearchParams({ filter: name })}`;
  if (kind === "workspace") return href("workspaces");
  return kind === "certificate" ? href("network") : undefined;
}

const COLUMNS: readonly Column<FleetEvent>[] = [
  {
    title: "About",
    width: "minmax(8rem, 2fr)",
    cell: ({ kind, name }) => `${kind}/${name}`,
    sort: ({ kind, name }) => `${kind}/${name}`,
  },
  {
    title: "Reason",
    width: "minmax(10rem, 1.5fr)",
    cell: ({ type, reason }) => <Badge tone={type === "Warning" ? "bad" : "good"}>{reason}</Badge>,
    sort: ({ reason }) => reason ?? "",
  },
  {
    title: "Message",
    width: "4fr",
    cell: ({ message }) => (
      <span class="cut" title={message}>
        {message}
      </span>
    ),
    wide: true,
  },
  { title: "Count", width: "4rem", cell: ({ count }) => count, sort: ({ count }) => count ?? 0, wide: true },
  {
    title: "Last",
    width: "6rem",
    cell: ({ lastAt }) => ago(lastAt),
    sort: ({ lastAt }) => -Date.parse(lastAt ?? ""),
  },
];
