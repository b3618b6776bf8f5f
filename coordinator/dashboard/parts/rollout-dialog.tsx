import { useEffect, useState } from "preact/hooks";
import { call } from "../data/api.ts";
import type { ApiError } from "../data/api-error.ts";
import { asApiError, useApp } from "../data/app.ts";
import type { PlanAnswer } from "../data/wire.ts";
import { Dialog, Failure } from "./pieces.tsx";
import { Plan } from "./plan-view.tsx";

export interface RolloutDialogProps {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly title: string;
  /** The label of the button. */
  readonly verb: string;
  readonly action: { readonly undo: { readonly toRevision: number } } | { readonly restart: object };
  readonly onClose: () => void;
}

/** Shows the dry run of a change to a rollout, and makes the change when the user confirms it. */
export function RolloutDialog({ namespace, kind, name, title, verb, action, onClose }: RolloutDialogProps) {
  const app = useApp();
  const [plan, setPlan] = useState<PlanAnswer>();
  const [error, setError] = useState<ApiError>();
  const rollout = { namespace, kind, name, ...action };
  const text = JSON.stringify(rollout);
  useEffect(() => {
    const gone = new AbortController();
    call<PlanAnswer>("plan", { namespace, rollout }, gone.signal).then(setPlan, (cause: unknown) => {
      if (!gone.signal.aborted) setError(asApiError(cause));
    });
    return () => gone.abort();
  }, [text]);
  const confirm = (): void => {
    call<{ message?: string }>("updateRollout", rollout).then(
      ({ message }) => {
        app.notify(message ?? "The rollout has begun.");
        onClose();
      },
      (cause: unknown) => setError(asApiError(cause)),
    );
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <Failure error={error} />
      {plan !== undefined && <Plan plan={plan} />}
      {plan === undefined && error === undefined && <p role="status">The coordinator prepares a preview…</p>}
      <div class="actions">
        <Confirm
          verb={verb}
          isReady={plan !== undefined}
          hasFailed={error !== undefined}
          onConfirm={confirm}
          tone="primary"
        />
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

/**
 * The button that confirms a change. It is enabled once the preview is shown, or once the preview
 * has failed and the label states so.
 */
export function Confirm({
  verb,
  isReady,
  hasFailed,
  onConfirm,
  tone,
}: {
  readonly verb: string;
  readonly isReady: boolean;
  readonly hasFailed: boolean;
  readonly onConfirm: () => void;
  readonly tone: "primary" | "danger";
}) {
  return (
    <button type="button" class={tone} onClick={onConfirm} disabled={!isReady && !hasFailed}>
      {hasFailed && !isReady ? `${verb} anyway, without a preview` : verb}
    </button>
  );
}
