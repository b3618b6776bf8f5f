import { useEffect, useState } from "preact/hooks";
import { type Me, whoAmI } from "./data/api.ts";
import type { ApiError } from "./data/api-error.ts";
import { asApiError } from "./data/app.ts";
import { onDoubtedSession } from "./data/session.ts";
import { Login } from "./login.tsx";
import { Failure } from "./parts/pieces.tsx";
import { Shell } from "./shell.tsx";

/**
 * Shows the log-in until there is a session, and then the page that the address names. A session that ends leads back to the log-in,
 * and the address stays.
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
  if (error !== undefined)
    return (
      <main class="alone">
        <h1>Forage</h1>
        <Failure error={error} />
      </main>
    );
  if (me === undefined) return null;
  if (me === "none" || me === "ended") return <Login isAgain={me === "ended"} onLogin={setMe} />;
  return <Shell me={me} onLogout={() => setMe("none")} />;
}

/** Calls when the session has ended. A refusal alone may be the answer to a request of a session before this one. */
function onEndedSession(ended: () => void): () => void {
  let isWatching = true;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    const failure = await whoAmI().then(() => undefined, asApiError);
    isAsking = false;
    if (isWatching && failure?.code === "UNAUTHENTICATED") ended();
  };
  const stop = onDoubtedSession(() => void ask());
  return () => {
    isWatching = false;
    stop();
  };
}
