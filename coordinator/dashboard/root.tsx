import { useEffect, useState } from "preact/hooks";
import { type Me, whoAmI } from "./data/api.ts";
import type { ApiError } from "./data/api-error.ts";
import { asApiError } from "./data/app.ts";
import { announceSessionEnd, onSuspectedSession } from "./data/session.ts";
import { Login } from "./login.tsx";
import { dropManifest } from "./manifest/kept-manifest.ts";
import { Failure } from "./parts/pieces.tsx";
import { Shell } from "./shell.tsx";

/**
 * Shows the log-in page until there is a session, and then the page in the address. When a session
 * ends, the log-in page is shown again and the address stays.
 */
export function Root() {
  const [me, setMe] = useState<Me | "none" | "ended">();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    whoAmI().then(setMe, (cause: unknown) => {
      const failure = asApiError(cause);
      if (failure.code === "UNAUTHENTICATED") setMe("none");
      else setError(failure);
    });
  }, []);
  const hasSession = typeof me === "object";
  useEffect(() => (hasSession ? onEndedSession(() => setMe("ended")) : undefined), [hasSession]);
  const logout = (): void => {
    dropManifest(sessionStorage);
    setMe("none");
  };
  if (error !== undefined)
    return (
      <main class="alone">
        <h1>Forage</h1>
        <Failure error={error} />
      </main>
    );
  if (me === undefined) return null;
  if (me === "none" || me === "ended") return <Login isAgain={me === "ended"} onLogin={setMe} />;
  return <Shell me={me} onLogout={logout} />;
}

/**
 * Calls `ended` when the session has ended. A single refusal is not enough: it may answer a request
 * of an earlier session.
 */
function onEndedSession(ended: () => void): () => void {
  let isWatching = true;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    const failure = await whoAmI().then(() => undefined, asApiError);
    isAsking = false;
    if (isWatching && failure?.code === "UNAUTHENTICATED") {
      announceSessionEnd();
      ended();
    }
  };
  const stop = onSuspectedSession(() => void ask());
  return () => {
    isWatching = false;
    stop();
  };
}
