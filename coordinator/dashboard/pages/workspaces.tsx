import { useApp, useTables } from "../data/app.ts";
import { plural } from "../data/format.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { Head } from "../parts/pieces.tsx";
import { PodTable } from "./pods.tsx";

/** Workspaces by their pods. */
export function WorkspacesPage() {
  const { namespace } = useApp();
  const live = useTables();
  const all = live
    .rows("pods")
    .filter(
      (pod) => pod.workload.startsWith("workspace/") && (namespace === "" || pod.namespace === namespace),
    );
  const { rows, text, setText } = useFilter(all, ({ name, state, node }) => `${name} ${state} ${node}`);
  return (
    <>
      <Head title="Workspaces" about={plural(rows.length, "workspace")}>
        <FilterField text={text} setText={setText} label="Filter workspaces" />
      </Head>
      <PodTable pods={rows} empty="No workspace runs." />
    </>
  );
}
