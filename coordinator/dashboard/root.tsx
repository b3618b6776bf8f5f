import { useEffect, useState } from "preact/hooks";
import { type ApiError, type Me, whoAmI } from "./data/api.ts";
import { asApiError } from "./data/app.ts";
import { Login } from "./login.tsx";
import { Failure } from "./parts/pieces.tsx";
import { Shell } from "./shell.tsx";

/** Shows the log-in until there is a session, and then the pages. */
export function Root() {
  const [me, setMe] = useState<Me | "none">();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    whoAmI().then(setMe, (cause: unknown) => {
      const failure = asApiError(cause);
      if (failure.code === "UNAUTHENTICATED") setMe("none");
      else setError(failure);
    });
  }, []);
  if (error !== undefined)
    return (
      <main class="alone">
        <h1>Forage</h1>
        <Failure error={error} />
      </main>
    );
  if (me === undefined) return null;
  if (me === "none") return <Login onLogin={setMe} />;
  return <Shell me={me} onLogout={() => setMe("none")} />;
}
