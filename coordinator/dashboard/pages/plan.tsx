import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../data/api.ts";
import type { ApiError } from "../data/api-error.ts";
import { asApiError, listedNamespace, useApp } from "../data/app.ts";
import { onSessionEnd } from "../data/session.ts";
import { type KeptManifest, keepManifest, takeManifest } from "../manifest/kept-manifest.ts";
import type { PlannedManifest } from "../manifest/plan-manifest.ts";
import { Failure, Head } from "../parts/pieces.tsx";
import { ManifestPlan } from "../parts/planned-manifest.tsx";

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

/** The reasons why a manifest was not restored after a log-in. */
const GONE: Readonly<Record<Exclude<KeptManifest["type"], "kept">, string>> = {
  secrets: "it may hold values of secrets, which this page does not store",
  "too-long": "it was longer than 256 KiB",
  "no-room": "the browser had no room for it",
};

/**
 * Shows the changes and steps that applying a pasted manifest would cause. Manifests of Kubernetes
 * and Compose are converted.
 */
export function PlanPage() {
  const app = useApp();
  const [kept] = useState(() => takeManifest(sessionStorage));
  const [text, setText] = useState(kept?.type === "kept" ? kept.text : "");
  const [isLossy, setLossy] = useState(false);
  const [planned, setPlanned] = useState<PlannedManifest>();
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  useKept(text);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const { planManifest } = await import("../manifest/plan-manifest.ts");
      const namespace = listedNamespace(app) || "default";
      setPlanned(await planManifest(text, { namespace, isLossy, call }));
    } catch (cause) {
      setPlanned(undefined);
      setError(asApiError(cause));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Head title="Plan" about="Preview the changes and steps of a manifest before you apply it" />
      {kept !== undefined && kept.type !== "kept" && (
        <p role="status">
          The manifest that was here when the session ended is gone: {GONE[kept.type]}. Paste it again.
        </p>
      )}
      <form onSubmit={submit}>
        <label for="manifest">Manifest of Forage or Kubernetes, or a Compose file, in YAML or JSON</label>
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
          <label>
            <input type="checkbox" checked={isLossy} onChange={() => setLossy(!isLossy)} /> Leave out what
            cannot be carried over
          </label>
        </div>
      </form>
      <Failure error={error} />
      {planned !== undefined && <ManifestPlan planned={planned} />}
    </>
  );
}

/** Keeps the manifest for the page after the log-in when the session expires. */
function useKept(text: string): void {
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    // The module is loaded during the session, because a restarting coordinator may not serve it
    // later.
    const loading = import("../manifest/holds-secrets.ts");
    loading.catch(() => {});
    return onSessionEnd(
      () =>
        void loading.then(
          ({ holdsSecrets }) => keepManifest(sessionStorage, latest.current, holdsSecrets),
          () => {},
        ),
    );
  }, []);
}
