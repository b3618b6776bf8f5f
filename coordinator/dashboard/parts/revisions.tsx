import { useState } from "preact/hooks";
import { may, useApp, useCall } from "../data/app.ts";
import { ago, plural } from "../data/format.ts";
import type { Revision } from "../data/wire.ts";
import { Badge, Failure } from "./pieces.tsx";
import { RolloutDialog } from "./rollout-dialog.tsx";

export interface RevisionsProps {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly changed: string;
}

/** Lists the revisions of a workload, newest first, with buttons to roll back. */
export function Revisions({ namespace, kind, name, changed }: RevisionsProps) {
  const app = useApp();
  const request = { namespace, kind, name };
  const { answer, error } = useCall<{ revisions?: readonly Revision[] }>("listRevisions", request, [changed]);
  const [chosen, setChosen] = useState<Revision>();
  const mayUndo = may(app, "editor", namespace);
  return (
    <>
      <Failure error={error} />
      <ul class="plain-list">
        {(answer?.revisions ?? []).map((revision) => (
          <li key={revision.number} class="card line">
            <span>
              <strong>Revision {revision.number}</strong> {ago(revision.createdAt)}{" "}
              {revision.inForce && <Badge tone="good">effective</Badge>}{" "}
              {!revision.good && <Badge tone="busy">has never been ready</Badge>}{" "}
              <span class="quiet">
                {plural(revision.pods ?? 0, "pod")} {revision.changeCause}
              </span>
            </span>
            {mayUndo && !revision.inForce && (
              <button type="button" onClick={() => setChosen(revision)}>
                Roll back to it…
              </button>
            )}
          </li>
        ))}
      </ul>
      {chosen !== undefined && (
        <RolloutDialog
          {...request}
          title={`Roll ${name} back to revision ${chosen.number}`}
          verb="Roll back"
          action={{ undo: { toRevision: chosen.number ?? 0 } }}
          onClose={() => setChosen(undefined)}
        />
      )}
    </>
  );
}
