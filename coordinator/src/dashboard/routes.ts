import { gunzipSync } from "node:zlib";
import { type WatchEventsRequest, WatchEventsResponse } from "@forage/proto/forage/operator/v1/operator";
import { Metadata } from "@grpc/grpc-js";
import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { CoordinatorError } from "../errors.ts";
import { type ApiCallOptions, type Bound, bodyOf, contextFor, runCall } from "../http/api/call.ts";
import { EVENT_STREAM_HEADERS, eventStream } from "../http/event-stream.ts";
import { assertMayCall, mayCall } from "../rpc/access.ts";
import type { CallContext } from "../rpc/caller.ts";
import { identify } from "../rpc/identify.ts";
import { answering, limitBody } from "./answer.ts";
import type { Assets } from "./assets.ts";
import { DASHBOARD_CALLS, isDashboardCall } from "./calls.ts";
import {
  BASE_PATH,
  cookieHeader,
  cookieOf,
  guard,
  type IdentifiedSession,
  identified,
  securityHeaders,
} from "./guard.ts";
import type { OperatorHandlers } from "./handlers.ts";
import type { History } from "./history.ts";
import { liveFeed } from "./live/live-feed.ts";
import type { LiveTables } from "./live/live-tables.ts";
import type { LiveWorkspaces } from "./live/workspace-row.ts";
import { addPodPortRoutes } from "./pod-port-routes.ts";
import type { PodPorts } from "./pod-ports/pod-ports.ts";
import { addSampleRoutes } from "./sample-routes.ts";
import { addSessionRoutes } from "./session-routes.ts";
import type { DashboardSessions } from "./sessions.ts";
import type { StoredSessions } from "./stored-browsers.ts";
import type { Streams } from "./streams.ts";
import type { UsageHistory } from "./usage-history.ts";

export interface DashboardRouteOptions extends ApiCallOptions {
  readonly assets: Assets;
  readonly sessions: DashboardSessions;
  readonly storedSessions: Pick<StoredSessions, "settled">;
  readonly streams: Streams;
  readonly tables: LiveTables;
  readonly workspaces: Pick<LiveWorkspaces, "namespace"> | undefined;
  readonly handlers: OperatorHandlers;
  readonly history: History;
  readonly usage: UsageHistory;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  readonly randomBytes: (count: number) => Uint8Array;
  /** The name of the cluster, for the title of the page. */
  readonly cluster: string;
  readonly podPorts: PodPorts | undefined;
  /** The name of the certificate issuer; empty if there is none. */
  readonly issuer: string;
}

type App = Hono<{ Bindings: HttpBindings }>;

/** The size limit of a request's body. The largest accepted manifest is longer in JSON. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const MAX_LOGIN_BYTES = 4_096;
const NONCE_BYTES = 16;
const NO_STORE = { "cache-control": "no-store" };
/** The headers of files whose URL contains a hash of their content. */
const IMMUTABLE = { "cache-control": "public, max-age=31536000, immutable" };

/**
 * Adds the routes of the dashboard: its page, log-in and log-out, calls of the operator service,
 * and the live tables. Calls pass the same checks as those of a gRPC client with the same token.
 * Only loopback and TLS connections are served.
 */
export function addDashboardRoutes(app: App, options: DashboardRouteOptions): void {
  app.get("/", (c) => c.redirect(`${BASE_PATH}/`));
  app.get(BASE_PATH, (c) => c.redirect(`${BASE_PATH}/`));
  app.use(`${BASE_PATH}/*`, guard);
  app.get(`${BASE_PATH}/`, (c) => page(c, options));
  app.get(`${BASE_PATH}/assets/:hash/:name`, (c) => asset(c, options));
  const limited = limitBody(MAX_BODY_BYTES);
  app.post(
    `${BASE_PATH}/api/login`,
    limitBody(MAX_LOGIN_BYTES),
    answering((c) => login(c, options)),
  );
  app.post(
    `${BASE_PATH}/api/logout`,
    answering(async (c) => logout(c, options)),
  );
  app.get(
    `${BASE_PATH}/api/me`,
    answering(async (c) => c.json(me(identified(c, options.sessions), options))),
  );
  app.post(
    `${BASE_PATH}/api/call/:name`,
    limited,
    answering((c) => call(c, options)),
  );
  app.get(
    `${BASE_PATH}/api/live`,
    answering(async (c) => live(c, options)),
  );
  app.get(
    `${BASE_PATH}/api/events`,
    answering(async (c) => events(c, options)),
  );
  addSampleRoutes(app, options);
  addPodPortRoutes(app, options);
  addSessionRoutes(app, options);
}

function page(c: Context, { assets, randomBytes, cluster }: DashboardRouteOptions): Response {
  const index = readAsset(assets, "index.html");
  if (index === undefined) return c.text(NOT_BUILT, 503);
  const nonce = Buffer.from(randomBytes(NONCE_BYTES)).toString("base64");
  const html = gunzipSync(index.gzip)
    .toString("utf8")
    .replaceAll("{{nonce}}", nonce)
    .replaceAll("{{cluster}}", escapeHtml(cluster));
  return c.body(html, 200, { ...securityHeaders(nonce), ...NO_STORE, "content-type": index.type });
}

function asset(c: Context, { assets }: DashboardRouteOptions): Response {
  const found = readAsset(assets, c.req.param("name") ?? "");
  if (found === undefined) return c.text("there is no such file\n", 404);
  const headers = { ...IMMUTABLE, "content-type": found.type, vary: "accept-encoding" };
  if ((c.req.header("accept-encoding") ?? "").includes("gzip"))
    return c.body(new Uint8Array(found.gzip), 200, { ...headers, "content-encoding": "gzip" });
  return c.body(new Uint8Array(gunzipSync(found.gzip)), 200, headers);
}

const NOT_BUILT =
  "the dashboard is not built: run `npm run bundle` in the checkout, or install the package again\n";

function readAsset(assets: Assets, name: string) {
  try {
    return assets.get(name);
  } catch {
    return undefined;
  }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

async function login(c: Bound, options: DashboardRouteOptions): Promise<Response> {
  const { token } = (await bodyOf(c)) as { readonly token?: unknown };
  const metadata = new Metadata();
  // Other characters are not allowed in a header, and no token contains them.
  if (typeof token === "string")
    metadata.set("authorization", `Bearer ${token.replace(/[^\x21-\x7e]/g, "")}`);
  const caller = identify(metadata, { type: "anonymous", remoteAddress: "" }, options.identify);
  if (caller.type !== "user" || caller.tokenId === undefined) {
    const problem = caller.type === "anonymous" ? caller.problem : undefined;
    throw new CoordinatorError(
      "UNAUTHENTICATED",
      problem ?? "a token begins with flt_; an admin makes one with `forage token create`",
    );
  }
  const before = cookieOf(c);
  if (before !== undefined) options.sessions.end(before);
  const id = options.sessions.start(caller.tokenId);
  await options.storedSessions.settled();
  c.header("set-cookie", cookieHeader(c, id));
  const found = options.sessions.find(id);
  if (found === undefined) throw new CoordinatorError("UNAUTHENTICATED", "the token has expired");
  return c.json(me(found, options), 200, NO_STORE);
}

async function logout(c: Bound, { sessions, storedSessions }: DashboardRouteOptions): Promise<Response> {
  const id = cookieOf(c);
  if (id !== undefined) sessions.end(id);
  await storedSessions.settled();
  c.header("set-cookie", cookieHeader(c, undefined));
  return c.json({}, 200, NO_STORE);
}

/**
 * Describes the token to the page, which hides what the token does not permit. The coordinator
 * still checks each call.
 */
function me({ caller }: IdentifiedSession, { cluster, issuer, podPorts }: DashboardRouteOptions) {
  const grants = caller.type === "user" ? caller.grants : [];
  return { cluster, issuer, opensPorts: podPorts !== undefined, token: caller.tokenId ?? "", grants };
}

async function call(c: Bound, options: DashboardRouteOptions): Promise<Response> {
  const { caller } = identified(c, options.sessions);
  const name = c.req.param("name") ?? "";
  if (!isDashboardCall(name)) throw new CoordinatorError("NOT_FOUND", `the dashboard has no call "${name}"`);
  const { request: requests, response: responses } = DASHBOARD_CALLS[name];
  const request = decoded(requests, await bodyOf(c));
  const handler = options.handlers[name] as UnaryHandler;
  const answer = await runCall(contextFor(c, name, caller), request, handler, options);
  return c.json(responses.toJSON(answer) as object, 200, NO_STORE);
}

type UnaryHandler = (request: unknown, context: CallContext) => Promise<never>;

function decoded(requests: { fromJSON(value: unknown): unknown }, body: unknown): unknown {
  try {
    return requests.fromJSON(body);
  } catch (cause) {
    if (cause instanceof CoordinatorError) throw cause;
    throw new CoordinatorError("INVALID", "the body is not a request of this call", { cause });
  }
}

const LIST_PODS = "/forage.operator.v1.OperatorService/ListPods";
const GET_WORKSPACES = "/wsman.WorkspaceManager/GetWorkspaces";
const LIST_CERTIFICATES = "/forage.operator.v1.OperatorService/ListCertificates";
const LIST_NODES = "/forage.operator.v1.OperatorService/ListNodes";

function live(c: Bound, options: DashboardRouteOptions): Response {
  const who = identified(c, options.sessions);
  const { caller } = who;
  const context = contextFor(c, "listPods", caller);
  const [namespace] = caller.type === "user" ? caller.grants.flatMap((grant) => [...grant.namespaces]) : [];
  assertMayCall(caller, context.method, { namespace: namespace === "*" ? "" : namespace });
  const { signal, end } = options.streams.begin(who, context.signal);
  const feed = liveFeed(
    {
      tables: options.tables,
      clock: { schedule: options.schedule, monotonicMs: options.monotonicMs },
      seesNodes: mayCall(caller, LIST_NODES, ""),
      seesWorkspaces: mayCall(caller, GET_WORKSPACES, options.workspaces?.namespace ?? ""),
      seesCertificates: mayCall(caller, LIST_CERTIFICATES, ""),
      seesNamespace: (name) => mayCall(caller, LIST_PODS, name),
    },
    signal,
  );
  const body = eventStream(feed, (text) => `data: ${text}\n\n`, { schedule: options.schedule, end });
  return c.body(body, 200, EVENT_STREAM_HEADERS);
}

/**
 * Streams events of one object, of a namespace, or of all: first the stored ones, and then new
 * ones.
 */
function events(c: Bound, options: DashboardRouteOptions): Response {
  const who = identified(c, options.sessions);
  const value = (name: string): string => c.req.query(name) ?? "";
  const kind = value("kind");
  // Events of nodes have no namespace.
  const namespace = kind === "node" ? "" : value("namespace");
  const filter = { kind, name: value("name"), type: "", reason: "", since: undefined };
  const request = { namespace, filter, after: 0n };
  const context = contextFor(c, "watchEvents", who.caller);
  assertMayCall(who.caller, context.method, request);
  const { signal, end } = options.streams.begin(who, context.signal);
  const batches = batchesOf(options.handlers.watchEvents, request, { ...context, signal });
  const body = eventStream(batches, eventBlock, {
    schedule: options.schedule,
    end,
  });
  return c.body(body, 200, EVENT_STREAM_HEADERS);
}

async function* batchesOf(
  handler: OperatorHandlers["watchEvents"],
  request: WatchEventsRequest,
  context: CallContext,
): AsyncGenerator<WatchEventsResponse> {
  if (!("frames" in handler)) throw new Error("the handler of watchEvents yields no encoded messages");
  for await (const bytes of handler.frames(request, context)) yield WatchEventsResponse.decode(bytes);
}

function eventBlock(batch: WatchEventsResponse): string {
  const { events: items = [] } = WatchEventsResponse.toJSON(batch) as {
    readonly events?: readonly unknown[];
  };
  return items.length === 0 ? ":\n\n" : `data: ${JSON.stringify(items)}\n\n`;
}
