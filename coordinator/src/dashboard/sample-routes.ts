import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { type Bound, contextFor } from "../http/api/call.ts";
import { EVENT_STREAM_HEADERS, eventStream } from "../http/event-stream.ts";
import { assertMayCall } from "../rpc/access.ts";
import { answering } from "./answer.ts";
import { BASE_PATH, identified } from "./guard.ts";
import type { History } from "./history.ts";
import type { PresentView } from "./history-view.ts";
import { sampleFeed } from "./sample-feed.ts";
import type { DashboardSessions } from "./sessions.ts";
import type { Streams } from "./streams.ts";
import type { UsageHistory } from "./usage-history.ts";

export interface SampleRouteOptions {
  readonly sessions: DashboardSessions;
  readonly streams: Streams;
  readonly history: History;
  readonly usage: UsageHistory;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  readonly monotonicMs: () => number;
}

/** Adds the streams of samples for graphs: first those of the last hours, then each new one. */
export function addSampleRoutes(app: Hono<{ Bindings: HttpBindings }>, options: SampleRouteOptions): void {
  const { history, usage } = options;
  app.get(
    `${BASE_PATH}/api/history`,
    answering(async (c) => {
      const { namespace, name } = c.req.query();
      // Samples of the whole fleet require the permission to see all nodes.
      if (namespace === undefined || name === undefined)
        return samples(c, "listNodes", {}, () => history.fleet(), options);
      return samples(c, "listResources", { namespace }, () => history.scaling(namespace, name), options);
    }),
  );
  app.get(
    `${BASE_PATH}/api/usage`,
    answering(async (c) => {
      const { node, namespace = "", pod = "" } = c.req.query();
      if (node !== undefined) return samples(c, "listNodes", {}, () => usage.node(node), options);
      return samples(c, "listPods", { namespace }, () => usage.pod(namespace, pod), options);
    }),
  );
}

/** Streams samples to a caller who may call the method with this request. */
function samples<Name extends string>(
  c: Bound,
  method: string,
  request: { readonly namespace?: string },
  read: () => PresentView<Name>,
  { sessions, streams, schedule, monotonicMs }: SampleRouteOptions,
): Response {
  const who = identified(c, sessions);
  const context = contextFor(c, method, who.caller);
  assertMayCall(who.caller, context.method, request);
  const { signal, end } = streams.begin(who, context.signal);
  const feed = sampleFeed(read, { schedule, monotonicMs }, signal);
  return c.body(
    eventStream(feed, (text) => `data: ${text}\n\n`, { schedule, end }),
    200,
    EVENT_STREAM_HEADERS,
  );
}
