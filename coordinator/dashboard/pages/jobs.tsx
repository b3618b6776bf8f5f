import type { ResourceRow } from "../../src/dashboard/live/rows.ts";
import { useApp, useTables } from "../data/app.ts";
import { age, agoMs } from "../data/format.ts";
import { href } from "../data/location.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { Badge, Head } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";
import { resourceText } from "./workloads.tsx";

export function JobsPage() {
  const { namespace } = useApp();
  const live = useTables();
  const all = live
    .rows("resources")
    .filter(
      (row) =>
        (row.kind === "job" || row.kind === "cron_job") && (namespace === "" || row.namespace === namespace),
    );
  const { rows, text, setText } = useFilter(all, resourceText);
  return (
    <>
      <Head title="Jobs" about="Jobs and cron jobs with their next runs">
        <FilterField text={text} setText={setText} label="Filter jobs" />
      </Head>
      <VirtualTable
        label="Jobs"
        rows={rows}
        columns={COLUMNS}
        keyOf={({ namespace: own, kind, name }) => `${own}/${kind}/${name}`}
        hrefOf={({ namespace: own, kind, name }) => href("resources", own, kind, name)}
        empty="There are no jobs here."
      />
    </>
  );
}

const WORDS = { good: "Scheduled", busy: "Running", bad: "Failed", off: "Complete" } as const;

const COLUMNS: readonly Column<ResourceRow>[] = [
  { title: "Name", width: "minmax(8rem, 2fr)", cell: ({ name }) => name, sort: ({ name }) => name },
  { title: "Kind", width: "5rem", cell: ({ kind }) => kind, sort: ({ kind }) => kind },
  {
    title: "State",
    width: "minmax(6rem, 1fr)",
    cell: ({ tone }) => <Badge tone={tone}>{WORDS[tone]}</Badge>,
    sort: ({ tone }) => tone,
  },
  { title: "Progress or schedule", width: "minmax(7rem, 1.4fr)", cell: ({ about }) => about, wide: true },
  {
    title: "Next run",
    width: "1fr",
    cell: ({ nextMs }) => agoMs(nextMs),
    sort: ({ nextMs }) => nextMs ?? 0,
    wide: true,
  },
  {
    title: "Namespace",
    width: "1fr",
    cell: ({ namespace }) => namespace,
    sort: ({ namespace }) => namespace,
    wide: true,
  },
  { title: "Of", width: "1fr", cell: ({ owner }) => owner, wide: true },
  {
    title: "Changed",
    width: "5rem",
    cell: ({ updatedMs }) => age(updatedMs),
    sort: ({ updatedMs }) => -updatedMs,
    wide: true,
  },
];
