import type { WorkspaceRow } from "../../src/dashboard/live/rows.ts";
import { useApp, useTables } from "../data/app.ts";
import { age, plural } from "../data/format.ts";
import { href } from "../data/location.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { Badge, Head } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";

/** Lists workspace instances with their phases and URLs. Stopped ones stay listed for a while. */
export function WorkspacesPage() {
  const { namespace } = useApp();
  const live = useTables();
  const all = live.rows("workspaces").filter((row) => namespace === "" || row.namespace === namespace);
  const { rows, text, setText } = useFilter(all, textOf);
  const running = rows.filter(({ tone }) => tone === "good").length;
  return (
    <>
      <Head title="Workspaces" about={`${plural(rows.length, "workspace")} · ${running} running`}>
        <FilterField text={text} setText={setText} label="Filter workspaces" />
      </Head>
      <VirtualTable
        label="Workspaces"
        rows={rows}
        columns={COLUMNS}
        keyOf={({ id }) => id}
        hrefOf={(row) => (row.pod === "" ? href("workspaces") : href("pods", row.namespace, row.pod))}
        empty="There is no workspace."
      />
    </>
  );
}

function textOf({ id, workspace, owner, phase, node, message }: WorkspaceRow): string {
  return `${id} ${workspace} ${owner} ${phase} ${node} ${message}`;
}

const COLUMNS: readonly Column<WorkspaceRow>[] = [
  { title: "Instance", width: "minmax(9rem, 2fr)", cell: ({ id }) => id, sort: ({ id }) => id },
  {
    title: "Phase",
    width: "minmax(8rem, 1fr)",
    cell: ({ tone, phase }) => <Badge tone={tone}>{phase}</Badge>,
    sort: ({ phase }) => phase,
  },
  { title: "URL", width: "4rem", cell: (row) => <OpenLink row={row} /> },
  {
    title: "Workspace",
    width: "1fr",
    cell: ({ workspace }) => workspace,
    sort: ({ workspace }) => workspace,
    wide: true,
  },
  { title: "Owner", width: "1fr", cell: ({ owner }) => owner, sort: ({ owner }) => owner, wide: true },
  { title: "Node", width: "1fr", cell: ({ node }) => node, sort: ({ node }) => node, wide: true },
  {
    title: "Age",
    width: "4rem",
    cell: ({ startedMs }) => age(startedMs),
    sort: ({ startedMs }) => -startedMs,
    wide: true,
  },
  {
    title: "Message",
    width: "2fr",
    cell: ({ message }) => (
      <span class="cut" title={message}>
        {message}
      </span>
    ),
    wide: true,
  },
];

/**
 * A link to a running workspace. The workspace requires the owner token, unless the browser is
 * already logged in there.
 */
function OpenLink({ row: { id, url, tone } }: { readonly row: WorkspaceRow }) {
  if (url === "" || tone !== "good") return null;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer" title={url} aria-label={`Open ${id}`}>
      Open
    </a>
  );
}
