import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { call, type Grant, type Me } from "./api.ts";
import { ApiError } from "./api-error.ts";
import { type Live, useLive } from "./live.ts";

/** The context that all pages share. */
export interface App {
  readonly me: Me;
  readonly live: Live;
  /** The namespace to which lists are limited; "" means all. */
  readonly namespace: string;
  /** Shows a short text for some seconds. */
  readonly notify: (text: string, tone?: "good" | "bad") => void;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error("the component is not inside an AppContext");
  return app;
}

/** Returns the live tables. The component is rendered again when they change. */
export function useTables(): Live {
  return useLive(useApp().live);
}

const ROLES = ["destination-reader", "viewer", "editor", "admin"];

/**
 * Reports whether the token has the role in the namespace; "" means all namespaces and
 * cluster-scoped objects.
 */
export function may({ me }: Pick<App, "me">, role: Grant["role"], namespace: string): boolean {
  return me.grants.some(
    (grant) =>
      ROLES.indexOf(grant.role) >= ROLES.indexOf(role) &&
      (grant.namespaces === "*" || grant.namespaces.includes(namespace)),
  );
}

/**
 * Returns the namespace for calls that list objects: a token for some namespaces must name one of
 * them.
 */
export function listedNamespace({ me, namespace }: Pick<App, "me" | "namespace">): string {
  if (namespace !== "" || me.grants.some((grant) => grant.namespaces === "*")) return namespace;
  return me.grants.flatMap((grant) => [...grant.namespaces])[0] ?? "";
}

export interface Called<Answer> {
  readonly answer: Answer | undefined;
  readonly error: ApiError | undefined;
  readonly again: () => void;
}

/**
 * Calls a method when the component appears and whenever a key changes. Until the next answer, the
 * last one remains.
 */
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
