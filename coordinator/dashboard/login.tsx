import { useState } from "preact/hooks";
import { login, type Me } from "./data/api.ts";
import type { ApiError } from "./data/api-error.ts";
import { asApiError } from "./data/app.ts";
import { Failure } from "./parts/pieces.tsx";

export interface LoginProps {
  /** Whether a session has just expired. */
  readonly isAgain: boolean;
  readonly onLogin: (me: Me) => void;
}

export function Login({ isAgain, onLogin }: LoginProps) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    login(token.trim())
      .then(onLogin, (cause: unknown) => setError(asApiError(cause)))
      .finally(() => setBusy(false));
  };
  return (
    <main class="alone">
      <h1>Forage</h1>
      {isAgain && <p role="status">The session has ended. Log in to go on where you were.</p>}
      <form onSubmit={submit}>
        <label for="token">API token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          required
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
        <Failure error={error} />
        <button type="submit" class="primary" disabled={busy}>
          Log in
        </button>
      </form>
      <p class="quiet">
        An admin makes tokens with <code>forage token create --role viewer</code>. The browser keeps a
        session, and not the token.
      </p>
    </main>
  );
}
