import { linkSignals } from "@forage/common/link-signals";
import type { ListEventsRequest, WatchEventsResponse } from "@forage/proto/forage/operator/v1/operator";
import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { type EventOptions, listEvents, watchEvents } from "../../api/operator/events.ts";
import { CoordinatorError } from "../../errors.ts";
import { assertMayCall } from "../../rpc/access.ts";
import type { TokenWatch } from "../../rpc/token-watch.ts";
import { EVENT_STREAM_HEADERS, eventStream } from "../event-stream.ts";
import { type ApiCallOptions, assertPrivate, type Bound, callAs, contextOf, failed } from "./call.ts";
import { eventFilterOf, eventJson, numberOf } from "./event-json.ts";

export interface EventRouteOptions extends ApiCallOptions, EventOptions {
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Ends streams when the token of their caller ends. */
  readonly tokens: Pick<TokenWatch, "watch">;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

/**
 * The most event streams: a part of the connections that the port accepts, so that health and
 * metrics always get an answer.
 */
const MAX_STREAMS = 64;

/**
 * Adds the routes for events: JSON, or with `Accept: text/event-stream` a stream of server-sent
 * events. Their ids are sequence numbers, so `Last-Event-ID` resumes a stream. Tokens, roles and
 * checks are the same as for gRPC. Only loopback and TLS connections are served.
 */
export function addEventRoutes(app: Hono<{ Bindings: HttpBindings }>, options: EventRouteOptions): void {
  const streams = { open: 0 };
  for (const path of ["/api/v1/namespaces/:namespace/events", "/api/v1/events"]) {
    app.get(path, async (c) => {
      try {
        assertPrivate(c);
        return wantsStream(c) ? stream(c, streams, options) : await list(c, options);
      } catch (error) {
        return failed(c, error);
      }
    });
  }
}

function wantsStream(c: Bound): boolean {
  return (c.req.header("accept") ?? "").includes("text/event-stream");
}

async function list(c: Bound, options: EventRouteOptions): Promise<Response> {
  const request: ListEventsRequest = {
    ...subjectOf(c),
    after: BigInt(numberOf("after", c.req.query("after")) ?? 0),
    limit: numberOf("limit", c.req.query("limit")) ?? 0,
  };
  const { events, sequence } = await callAs(
    c,
    "listEvents",
    request,
    (it) => listEvents(it, options),
    options,
  );
  const body = { items: events.map(eventJson), sequence: Number(sequence) };
  return c.json(body, 200, { "cache-control": "no-store" });
}

function stream(c: Bound, streams: { open: number }, options: EventRouteOptions): Response {
  const context = contextOf(c, "watchEvents", options.identify);
  const after =
    numberOf("Last-Event-ID", c.req.header("last-event-id")) ?? numberOf("after", c.req.query("after"));
  const request = { ...subjectOf(c), after: after === undefined ? undefined : BigInt(after) };
  assertMayCall(context.caller, context.method, request);
  if (streams.open >= MAX_STREAMS)
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `${MAX_STREAMS} streams of events are open; try again later`,
    );
  streams.open++;
  const gone = new AbortController();
  const { signal } = linkSignals(gone.signal, context.signal, options.stopping);
  const end = (): void => {
    unwatch();
    if (gone.signal.aborted) return;
    gone.abort();
    streams.open--;
    options.observe(context.method, 0, 0);
  };
  const unwatch = options.tokens.watch(context.caller, end);
  const batches = watchEvents(request, { ...context, signal }, options);
  return c.body(
    eventStream(batches, blocksOf, { schedule: options.schedule, end }),
    200,
    EVENT_STREAM_HEADERS,
  );
}

/**
 * Formats a batch as server-sent events. A batch without events still contains the id of its
 * position.
 */
function blocksOf({ events, sequence, gap }: WatchEventsResponse): string {
  const missing = gap ? "event: gap\ndata: {}\n\n" : "";
  const blocks = events.map(
    (event) => `id: ${event.sequence}\nevent: event\ndata: ${JSON.stringify(eventJson(event))}\n\n`,
  );
  return `${missing}${blocks.join("")}id: ${sequence}\n\n`;
}

function subjectOf(c: Bound): Pick<ListEventsRequest, "namespace" | "filter"> {
  return { namespace: c.req.param("namespace") ?? "", filter: eventFilterOf((name) => c.req.query(name)) };
}
