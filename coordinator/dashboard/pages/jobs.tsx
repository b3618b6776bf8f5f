import type { ResourceRow } from "../../src/dashboard/live/rows.ts";
import { listedNamespace, useApp, useCall, useTables } from "../data/app.ts";
import { age, ago } from "../data/format.ts";
import { href } from "../data/location.ts";
import type { ResourceList } from "../data/wire.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { Badge, Head } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";
import { resourceText } from "./workloads.tsx";

interface JobRow extends ResourceRow {
  readonly nextAt: string | undefined;
}

export function JobsPage() {
  const app = useApp();
  const live = useTables();
  const own = live
    .rows("resources")
    .filter(
      ({ kind, namespace }) =>
        (kind === "job" || kind === "cron_job") && (app.namespace === "" || namespace === app.namespace),
    );
  const schedules = own
    .filter(({ kind }) => kind === "cron_job")
    .map(({ name, generation }) => `${name} ${generation}`);
  const { answer } = useCall<ResourceList>("listResources", { namespace: listedNamespace(app) }, [
    schedules.join(),
  ]);
  const nextOf = ({ namespace, kind, name }: ResourceRow): string | undefined =>
    answer?.resources?.find(
      (each) => each.namespace === namespace && each.kind === kind && each.name === name,
    )?.cronJob?.nextAt;
  const all = own.map(
    (row): JobRow => ({ ...row, nextAt: row.kind === "cron_job" ? nextOf(row) : undefined }),
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
        keyOf={({ namespace, kind, name }) => `${namespace}/${kind}/${name}`}
        hrefOf={({ namespace, kind, name }) => href("resources", namespace, kind, name)}
        empty="There are no jobs here."
      />
    </>
  );
}

const WORDS = { good: "Scheduled", busy: "Running", bad: "Failed", off: "Complete" } as const;

const COLUMNS: readonly Column<JobRow>[] = [
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
    cell: ({ nextAt }) => ago(nextAt),
    sort: ({ nextAt }) => nextAt ?? "",
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
