import type { PodRow } from "../../src/dashboard/live/rows.ts";
import { useApp, useTables } from "../data/app.ts";
import { age, count, plural } from "../data/format.ts";
import { href } from "../data/location.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { Badge, Head } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";

export function PodsPage() {
  const { namespace } = useApp();
  const live = useTables();
  const all = live.rows("pods").filter((pod) => namespace === "" || pod.namespace === namespace);
  const { rows, text, setText } = useFilter(all, podText);
  const ready = rows.filter(({ tone }) => tone === "good").length;
  return (
    <>
      <Head title="Pods" about={`${plural(rows.length, "pod")} · ${count(ready)} ready`}>
        <FilterField text={text} setText={setText} label="Filter pods" />
      </Head>
      <PodTable pods={rows} />
    </>
  );
}

export function PodTable({
  pods,
  empty = "No pod matches.",
}: {
  readonly pods: readonly PodRow[];
  readonly empty?: string;
}) {
  return (
    <VirtualTable
      label="Pods"
      rows={pods}
      columns={COLUMNS}
      keyOf={({ uid }) => uid}
      hrefOf={({ namespace, name }) => href("pods", namespace, name)}
      empty={empty}
    />
  );
}

function podText({ namespace, name, workload, node, state, message }: PodRow): string {
  return `${namespace}/${name} ${workload} ${node} ${state} ${message}`;
}

const COLUMNS: readonly Column<PodRow>[] = [
  { title: "Pod", width: "minmax(9rem, 2.5fr)", cell: ({ name }) => name, sort: ({ name }) => name },
  {
    title: "State",
    width: "minmax(11rem, 1.4fr)",
    cell: ({ tone, state }) => <Badge tone={tone}>{state}</Badge>,
    sort: ({ state }) => state,
  },
  {
    title: "Namespace",
    width: "1fr",
    cell: ({ namespace }) => namespace,
    sort: ({ namespace }) => namespace,
    wide: true,
  },
  {
    title: "Ready",
    width: "4rem",
    cell: ({ ready, containers }) => `${ready}/${containers}`,
    wide: true,
  },
  { title: "Restarts", width: "5rem", cell: ({ restarts }) => restarts, sort: ({ restarts }) => restarts },
  {
    title: "Age",
    width: "4rem",
    cell: ({ createdMs }) => age(createdMs),
    sort: ({ createdMs }) => -createdMs,
    wide: true,
  },
  { title: "Node", width: "1fr", cell: ({ node }) => node, sort: ({ node }) => node, wide: true },
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
