import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { CoordinatorError } from "../errors.ts";
import { type ApiCallOptions, type Bound, bodyOf, contextFor, runCall } from "../http/api/call.ts";
import { answering, limitBody } from "./answer.ts";
import { BASE_PATH, identified } from "./guard.ts";
import type { PodPorts } from "./pod-ports/pod-ports.ts";
import type { DashboardSessions } from "./sessions.ts";

export interface PodPortRouteOptions extends ApiCallOptions {
  readonly sessions: DashboardSessions;
  /** The opened ports; undefined if ports of pods are not served. */
  readonly podPorts: PodPorts | undefined;
}

const MAX_BODY_BYTES = 4_096;

/**
 * Adds the route that opens a port of a pod, with the permissions and audit records of `forage
 * port-forward`. The answer contains the address for the browser.
 */
export function addPodPortRoutes(app: Hono<{ Bindings: HttpBindings }>, options: PodPortRouteOptions): void {
  app.post(
    `${BASE_PATH}/api/ports`,
    limitBody(MAX_BODY_BYTES),
    answering((c) => openPort(c, options)),
  );
}

async function openPort(c: Bound, options: PodPortRouteOptions): Promise<Response> {
  const { session, caller } = identified(c, options.sessions);
  const { podPorts } = options;
  if (podPorts === undefined)
    throw new CoordinatorError(
      "UNIMPLEMENTED",
      "this coordinator opens no ports of pods: set http.podDomain in its configuration, or forward the port to this computer with the command line",
    );
  const { namespace = "", pod = "", port = 0 } = (await bodyOf(c)) as Readonly<Record<string, unknown>>;
  const request = { namespace: String(namespace), pod: String(pod), port: Number(port) };
  const context = contextFor(c, "portForward", caller);
  const { host, path } = await runCall(
    context,
    request,
    async () => podPorts.open(session, caller, request),
    options,
  );
  const proto = "encrypted" in c.env.incoming.socket ? "https" : "http";
  // The browser may reach the coordinator through a forwarded port, so the address uses the port
  // that the browser sees.
  const ownPort = /:\d+$/.exec(c.req.header("host") ?? "")?.[0] ?? "";
  return c.json({ url: `${proto}://${host}${ownPort}${path}` }, 200, { "cache-control": "no-store" });
}
