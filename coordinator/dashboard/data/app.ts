import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { call, type Grant, type Me } from "./api.ts";
import { ApiError } from "./api-error.ts";
import { type Live, useLive } from "./live.ts";

/** The parts that pages share. */
export interface App {
  readonly me: Me;
  readonly live: Live;
  /** The namespace that lists are limited to; "": all. */
  readonly namespace: string;
  /** Shows a short text for a while. */
  readonly notify: (text: string, tone?: "good" | "bad") => void;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error("there is no AppContext around this component");
  return app;
}

/** The live tables. The component is drawn again when they change. */
export function useTables(): Live {
  return useLive(useApp().live);
}

const ROLES = ["destination-reader", "viewer", "editor", "admin"];

/** Reports whether the token has the role in the namespace; "": in all and in what belongs to none. */
export function may({ me }: Pick<App, "me">, role: Grant["role"], namespace: string): boolean {
  return me.grants.some(
    (grant) =>
      ROLES.indexOf(grant.role) >= ROLES.indexOf(role) &&
      (grant.namespaces === "*" || grant.namespaces.includes(namespace)),
  );
}

/** Returns the namespace for calls on a list: a token that doesn't cover all of them has to name one. */
export function listedNamespace({ me, namespace }: Pick<App, "me" | "namespace">): string {
  if (namespace !== "" || me.grants.some((grant) => grant.namespaces === "*")) return namespace;
  return me.grants.flatMap((grant) => [...grant.namespaces])[0] ?? "";
}

export interface Called<Answer> {
  readonly answer: Answer | undefined;
  readonly error: ApiError | undefined;
  readonly again: () => void;
}

/** Calls a method when the component appears, and again when a key changes. The last answer stays until the next one. */
export function useCall<Answer>(
  method: string,
  request: object,
  keys: readonly (string | number)[] = [],
): Called<Answer> {
  const [state, setState] = useState<Omit<Called<Answer>, "again">>({ answer: undefined, error: undefined });
  const [turn, setTurn] = useState(0);
  const text = JSON.stringify(request);
  useEffect(() => {
    const gone = new AbortController();
    call<Answer>(method, request, gone.signal).then(
      (answer) => setState({ answer, error: undefined }),
      (error: unknown) => {
        if (gone.signal.aborted) return;
        setState((before) => ({ answer: before.answer, error: asApiError(error) }));
      },
    );
    return () => gone.abort();
  }, [method, text, turn, ...keys]);
  return { ...state, again: () => setTurn((before) => before + 1) };
}

export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError("INTERNAL", String(error));
}
