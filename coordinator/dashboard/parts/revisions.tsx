import { useEffect, useState } from "preact/hooks";
import { type ApiError, call } from "../data/api.ts";
import { asApiError, may, useApp, useCall } from "../data/app.ts";
import { ago } from "../data/format.ts";
import type { PlanAnswer, Revision } from "../data/wire.ts";
import { Badge, Dialog, Failure } from "./pieces.tsx";
import { Plan } from "./plan-view.tsx";

export interface RevisionsProps {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly changed: string;
}

/** The revisions of a workload, newest first, and the way back to one of them. */
export function Revisions(props: RevisionsProps) {
  const app = useApp();
  const { namespace, kind, name, changed } = props;
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
                {revision.pods ?? 0} pods {revision.changeCause}
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
        <UndoDialog {...props} revision={chosen} onClose={() => setChosen(undefined)} />
      )}
    </>
  );
}

/** Shows what a rollback would change and do, before it is done. */
function UndoDialog({
  namespace,
  kind,
  name,
  labels,
  revision,
  onClose,
}: RevisionsProps & { readonly revision: Revision; readonly onClose: () => void }) {
  const app = useApp();
  const [plan, setPlan] = useState<PlanAnswer>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    const bundle = { namespace, labels: labels ?? {}, resources: [revision.spec] };
    call<PlanAnswer>("plan", { namespace, bundle }).then(
      (answer) => {
        // Others with the same labels are not part of a rollback, although an apply would remove them.
        const own = (answer.resources ?? []).filter((each) => each.kind === kind && each.name === name);
        setPlan({ ...answer, resources: own });
      },
      (cause: unknown) => setError(asApiError(cause)),
    );
  }, [namespace, kind, name, labels, revision]);
  const undo = (): void => {
    call<{ message?: string }>("updateRollout", {
      namespace,
      kind,
      name,
      undo: { toRevision: revision.number },
    }).then(
      ({ message }) => {
        app.notify(message ?? "The rollback has begun.");
        onClose();
      },
      (cause: unknown) => setError(asApiError(cause)),
    );
  };
  return (
    <Dialog title={`Roll ${name} back to revision ${revision.number}`} onClose={onClose}>
      <Failure error={error} />
      {plan === undefined ? <p role="status">Working out what it will do…</p> : <Plan plan={plan} />}
      <div class="actions">
        <button type="button" class="primary" onClick={undo} disabled={plan === undefined}>
          Roll back
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}
