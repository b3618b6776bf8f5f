import type { ResourceRow } from "../../src/dashboard/live/rows.ts";
import { useApp, useTables } from "../data/app.ts";
import { age, plural } from "../data/format.ts";
import { href } from "../data/location.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { Badge, Bar, Head } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";

export function WorkloadsPage() {
  const { namespace } = useApp();
  const live = useTables();
  const all = live
    .rows("resources")
    .filter((row) => row.kind === "container_service" && (namespace === "" || row.namespace === namespace));
  const { rows, text, setText } = useFilter(all, resourceText);
  const moving = rows.filter(({ tone }) => tone !== "good" && tone !== "off").length;
  return (
    <>
      <Head title="Workloads" about={`${plural(rows.length, "workload")} · ${moving} not ready`}>
        <FilterField text={text} setText={setText} label="Filter workloads" />
      </Head>
      <VirtualTable
        label="Workloads"
        rows={rows}
        columns={COLUMNS}
        keyOf={({ namespace: own, name }) => `${own}/${name}`}
        hrefOf={({ namespace: own, kind, name }) => href("resources", own, kind, name)}
        empty={all.length === 0 ? "Nothing is deployed here." : "No workload matches."}
      />
    </>
  );
}

export function resourceText({ namespace, kind, name, message, image, about }: ResourceRow): string {
  return `${namespace}/${name} ${kind} ${message} ${image} ${about}`;
}

const TONES = { good: "Ready", busy: "Rolling out", bad: "Failing", off: "Stopped" } as const;

const COLUMNS: readonly Column<ResourceRow>[] = [
  { title: "Workload", width: "minmax(8rem, 2fr)", cell: ({ name }) => name, sort: ({ name }) => name },
  {
    title: "State",
    width: "minmax(7rem, 1fr)",
    cell: (row) => <Badge tone={row.tone}>{row.deleting ? "Deleting" : TONES[row.tone]}</Badge>,
    sort: ({ tone }) => tone,
  },
  {
    title: "Ready",
    width: "minmax(6rem, 1fr)",
    cell: ({ ready, replicas }) => (
      <Bar part={ready} whole={replicas} label="Ready" text={`${ready}/${replicas}`} />
    ),
    sort: ({ ready, replicas }) => (replicas === 0 ? 1 : ready / replicas),
  },
  {
    title: "Namespace",
    width: "1fr",
    cell: ({ namespace }) => namespace,
    sort: ({ namespace }) => namespace,
    wide: true,
  },
  {
    title: "Image",
    width: "2fr",
    cell: ({ image }) => (
      <span class="cut" title={image}>
        {image}
      </span>
    ),
    wide: true,
  },
  {
    title: "Changed",
    width: "5rem",
    cell: ({ updatedMs }) => age(updatedMs),
    sort: ({ updatedMs }) => -updatedMs,
    wide: true,
  },
  {
    title: "Why",
    width: "2fr",
    cell: ({ message }) => (
      <span class="cut" title={message}>
        {message}
      </span>
    ),
    wide: true,
  },
];
