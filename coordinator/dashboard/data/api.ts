import { ApiError } from "./api-error.ts";
import { suspectSession } from "./session.ts";

/** The token with which the browser is logged in, and its permissions. */
export interface Me {
  readonly cluster: string;
  /** The name of the certificate issuer; empty if there is none. */
  readonly issuer: string;
  /** Whether the coordinator can open ports of pods. */
  readonly opensPorts: boolean;
  readonly token: string;
  readonly grants: readonly Grant[];
}

export interface Grant {
  readonly role: "destination-reader" | "viewer" | "editor" | "admin";
  readonly namespaces: "*" | readonly string[];
}

/** Matches requests that are idempotent and may be repeated. */
const REPEATABLE = /^(login|logout|call\/(list|get|why|plan|whatIf|capacity)[A-Za-z]*)$/;
const REPEATS = 2;
const REPEAT_MS = 500;
const OWN = { "x-forage-dashboard": "1", "content-type": "application/json" };

export const login = (token: string): Promise<Me> => send("login", { token });
export const logout = (): Promise<unknown> => send("logout", {});
export const whoAmI = (): Promise<Me> => answered(() => fetch("api/me"), REPEATS);

/**
 * Calls a method of the operator service. Messages are in JSON form, which omits empty fields.
 * Throws ApiError.
 */
export function call<Answer>(method: string, request: object, signal?: AbortSignal): Promise<Answer> {
  return send(`call/${method}`, request, signal);
}

export function send<Answer>(path: string, body: unknown, signal?: AbortSignal): Promise<Answer> {
  const init = { method: "POST", headers: OWN, body: JSON.stringify(body), ...(signal && { signal }) };
  const asked = answered<Answer>(() => fetch(`api/${path}`, init), REPEATABLE.test(path) ? REPEATS : 0);
  return asked.catch((error: unknown) => {
    throw reported(error);
  });
}

/** Opens a stream of bytes. Throws ApiError. */
export async function open(path: string, signal: AbortSignal, body?: unknown): Promise<Response> {
  const init =
    body === undefined ? { signal } : { method: "POST", headers: OWN, body: JSON.stringify(body), signal };
  const response = await fetch(`api/${path}`, init);
  if (!response.ok) throw reported(await errorOf(response));
  return response;
}

function reported(error: unknown): unknown {
  if (error instanceof ApiError && error.code === "UNAUTHENTICATED") suspectSession();
  return error;
}

/**
 * Repeats a request that failed before an answer, because browsers abort requests when the network
 * of their host changes.
 */
async function answered<Answer>(ask: () => Promise<Response>, repeats: number): Promise<Answer> {
  let response: Response;
  try {
    response = await ask();
  } catch (error) {
    if (error instanceof DOMException) throw error;
    if (repeats === 0) throw new ApiError("UNAVAILABLE", "the coordinator does not answer");
    await new Promise((resolve) => setTimeout(resolve, REPEAT_MS));
    return answered(ask, repeats - 1);
  }
  if (!response.ok) throw await errorOf(response);
  return (await response.json()) as Answer;
}

async function errorOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => ({}))) as {
    readonly code?: string;
    readonly message?: string;
    readonly violations?: ApiError["violations"];
  };
  return new ApiError(
    body.code ?? "UNAVAILABLE",
    body.message ?? `the coordinator answers with ${response.status}`,
    body.violations,
  );
}
