import type { LiveWorkspaces } from "../dashboard/live/workspace-row.ts";
import type { Workspaces } from "./open-workspaces.ts";

/** Returns the instances for the dashboard, without owner tokens. */
export function liveWorkspaces(
  { view, statuses }: Pick<Workspaces, "view" | "statuses">,
  namespace: string,
): LiveWorkspaces {
  return {
    namespace,
    ids: () => view.instances().map(({ record }) => record.id),
    statusOf: (id) => {
      const entry = view.instance(id);
      return entry && statuses.statusOf(entry.record, false);
    },
    subscribe: (changed) =>
      view.subscribe((changes) => {
        for (const { id, type } of changes) if (type === "instance") changed(id);
      }),
  };
}
