import type { MiddlewareHandler } from "hono";
import { CoordinatorError } from "../errors.ts";
import { assertPrivate, type Bound, failed } from "../http/api/call.ts";
import type { Caller } from "../rpc/caller.ts";
import type { DashboardSession, DashboardSessions } from "./sessions.ts";

/**
 * A header that scripts of other sites can't send: browsers first request permission from this
 * server, which never grants it.
 */
export const OWN_HEADER = "x-forage-dashboard";
/** The path prefix of the dashboard. */
export const BASE_PATH = "/dashboard";

export interface IdentifiedSession {
  readonly session: DashboardSession;
  readonly caller: Caller;
}

/**
 * Returns the headers of every answer. Only the dashboard's own files may be loaded, and no other
 * page may embed it. Terminals create a style element, which needs the nonce.
 */
export function securityHeaders(nonce?: string): Readonly<Record<string, string>> {
  const styles = nonce === undefined ? "'self'" : `'self' 'nonce-${nonce}'`;
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${styles}`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return {
    "content-security-policy": policy.join("; "),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  };
}

/**
 * Refuses unencrypted connections from other hosts, and requests that another site may have caused.
 * Reads need only the cookie, which browsers send with requests of the same site; other origins
 * can't read the answers.
 */
export const guard: MiddlewareHandler = async (c, next) => {
  for (const [name, value] of Object.entries(securityHeaders())) c.header(name, value);
  try {
    assertPrivate(c as Bound);
    if (c.req.method !== "GET") assertOwnPage(c as Bound);
  } catch (error) {
    return failed(c, error);
  }
  return next();
};

function assertOwnPage(c: Bound): void {
  const site = c.req.header("sec-fetch-site") ?? "same-origin";
  const origin = c.req.header("origin");
  const own = origin === undefined || URL.parse(origin)?.host === c.req.header("host");
  if (c.req.header(OWN_HEADER) === "1" && site === "same-origin" && own) return;
  throw new CoordinatorError("PERMISSION_DENIED", "only the dashboard's own pages may send this request");
}

/** Returns the session of the request's cookie. Throws UNAUTHENTICATED. */
export function identified(c: Bound, sessions: DashboardSessions): IdentifiedSession {
  const id = cookieOf(c);
  const found = id === undefined ? undefined : sessions.find(id);
  if (found !== undefined) return found;
  throw new CoordinatorError("UNAUTHENTICATED", "log in: there is no session, or it has ended");
}

/** Returns the session id in the request's cookie. */
export function cookieOf(c: Bound): string | undefined {
  const name = `${cookieName(c)}=`;
  const found = (c.req.header("cookie") ?? "").split(/; */).find((part) => part.startsWith(name));
  return found?.slice(name.length);
}

/**
 * Returns the header that sets the session's cookie, or deletes it if there is no id. Scripts can't
 * read the cookie.
 */
export function cookieHeader(c: Bound, id: string | undefined): string {
  const attributes = ["HttpOnly", "SameSite=Strict", `Path=${isSecure(c) ? "/" : BASE_PATH}`];
  if (isSecure(c)) attributes.push("Secure");
  if (id === undefined) attributes.push("Max-Age=0");
  return [`${cookieName(c)}=${id ?? ""}`, ...attributes].join("; ");
}

/**
 * Returns the name of the cookie. It contains the port, because browsers share cookies between the
 * ports of a host.
 */
function cookieName(c: Bound): string {
  const name = `forage-session-${c.env.incoming.socket.localPort}`;
  return isSecure(c) ? `__Host-${name}` : name;
}

function isSecure(c: Bound): boolean {
  return "encrypted" in c.env.incoming.socket;
}
