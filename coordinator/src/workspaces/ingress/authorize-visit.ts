import type { IncomingHttpHeaders } from "node:http";
import type { ReachableWorkspace } from "../access/workspace-directory.ts";
import { isSameToken } from "../owner-token.ts";
import { cookieValue, ownerCookieName } from "./owner-cookie.ts";

export const TOKEN_HEADER = "x-gitpod-owner-token";

/** The result of a check whether a request may reach a workspace; a refusal has its HTTP status. */
export type Visit =
  | { readonly type: "allowed"; readonly by: "public" | "header" | "cookie" }
  | { readonly type: "refused"; readonly status: 400 | 401 | 403; readonly message: string };

/**
 * Decides whether a request may reach a workspace. `host` is the installation's host, which is part
 * of the cookie's name.
 */
export function authorizeVisit(
  workspace: ReachableWorkspace,
  port: number,
  headers: IncomingHttpHeaders,
  host: string,
): Visit {
  if (workspace.admitsEveryone || workspace.publicPorts.has(port)) return { type: "allowed", by: "public" };
  const header = headers[TOKEN_HEADER];
  const cookie = cookieValue(headers.cookie, ownerCookieName(host, workspace.instanceId));
  const given = header === undefined ? cookie : String(header);
  if (given === undefined || given === "")
    return refused(401, "this workspace is private: open it with its owner token or a login link");
  const token = decoded(given);
  if (token === undefined) return refused(400, "the owner token can't be decoded");
  if (!isSameToken(token, workspace.ownerToken))
    return refused(403, "the owner token is not this workspace's");
  return { type: "allowed", by: header === undefined ? "cookie" : "header" };
}

function refused(status: 400 | 401 | 403, message: string): Visit {
  return { type: "refused", status, message };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
