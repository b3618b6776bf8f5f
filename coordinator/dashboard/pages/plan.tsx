import { useState } from "preact/hooks";
import { call } from "../data/api.ts";
import type { ApiError } from "../data/api-error.ts";
import { asApiError } from "../data/app.ts";
import type { PlanAnswer } from "../data/wire.ts";
import { Failure, Head } from "../parts/pieces.tsx";
import { Plan } from "../parts/plan-view.tsx";

const EXAMPLE = `namespace: hello
labels:
  app: hello
resources:
  - name: hello
    containerService:
      scaling: { replicas: 2 }
      container:
        name: web
        image: localhost/forage/hello:1
`;

interface Planned {
  readonly namespace: string;
  readonly plan: PlanAnswer;
}

/** Shows the changes and steps of applying a pasted manifest. Nothing changes. */
export function PlanPage() {
  const [text, setText] = useState("");
  const [plans, setPlans] = useState<readonly Planned[]>([]);
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const { readManifest } = await import("../manifest/read-manifest.ts");
      const found: Planned[] = [];
      for (const bundle of readManifest(text)) {
        const { namespace } = bundle;
        found.push({ namespace, plan: await call<PlanAnswer>("plan", { namespace, bundle }) });
      }
      setPlans(found);
    } catch (cause) {
      setPlans([]);
      setError(asApiError(cause));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Head title="Plan" about="Preview the changes and steps of a manifest before you apply it" />
      <form onSubmit={submit}>
        <label for="manifest">Manifest, in YAML or JSON</label>
        <textarea
          id="manifest"
          rows={14}
          spellcheck={false}
          value={text}
          placeholder={EXAMPLE}
          required
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <div class="actions">
          <button type="submit" class="primary" disabled={busy}>
            Show the plan
          </button>
        </div>
      </form>
      <Failure error={error} />
      {plans.map(({ namespace, plan }) => (
        <section key={namespace} aria-label={`Plan for namespace ${namespace}`}>
          <h2>Namespace {namespace}</h2>
          <Plan plan={plan} />
        </section>
      ))}
    </>
  );
}
