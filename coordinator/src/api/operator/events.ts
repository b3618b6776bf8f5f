import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { WatchEventsResponse } from "@forage/proto/forage/operator/v1/operator";
import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import type { EventLog } from "../../events/event-log.ts";
import { type EventBatch, type EventQuery, followEvents, newestEvents } from "../../events/query.ts";
import { SharedBatches } from "../../events/shared-batches.ts";
import { toEpochMs } from "../../model/timestamp.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { FramesHandler } from "../../rpc/frames.ts";

export interface EventOptions {
  readonly events: EventLog;
}

const DEFAULT_LIMIT = 500;
const MAX_LIMIT = 10_000;

/** Returns recent events. @throws CoordinatorError INVALID. */
export async function listEvents(
  { namespace, filter, after, limit }: wire.ListEventsRequest,
  { events }: EventOptions,
): Promise<wire.ListEventsResponse> {
  if (limit > MAX_LIMIT)
    throw new CoordinatorError("INVALID", `limit must be at most ${MAX_LIMIT}, not ${limit}`);
  const query = queryOf(namespace, filter);
  const found = await newestEvents(events, query, Number(after), limit === 0 ? DEFAULT_LIMIT : limit);
  return { events: found.events.map(eventView), sequence: BigInt(found.sequence) };
}

/** Yields events. @throws CoordinatorError INVALID, or RESOURCE_EXHAUSTED if there are too many watchers. */
export async function* watchEvents(
  { namespace, filter, after }: wire.WatchEventsRequest,
  { signal }: CallContext,
  { events }: EventOptions,
): AsyncGenerator<wire.WatchEventsResponse> {
  const query = queryOf(namespace, filter);
  const from = after === undefined ? undefined : Number(after);
  for await (const batch of followEvents(events, query, from, signal)) {
    yield responseOf(batch);
  }
}

/** Returns the handler of WatchEvents, whose watchers share their encoded messages. */
export function watchEventsHandler({ events }: EventOptions): FramesHandler<wire.WatchEventsRequest> {
  const shared = new SharedBatches((batch) => WatchEventsResponse.encode(responseOf(batch)).finish());
  return {
    frames: async function* ({ namespace, filter, after }, { signal }) {
      const query = queryOf(namespace, filter);
      const from = after === undefined ? undefined : Number(after);
      for await (const batch of followEvents(events, query, from, signal, shared.select))
        yield shared.encoded(batch);
    },
  };
}

function responseOf({ events, sequence, gap }: EventBatch): WatchEventsResponse {
  return { events: events.map(eventView), sequence: BigInt(sequence), gap };
}

/** Returns the public form of a stored event. */
export function eventView(event: EventRecord): wire.Event {
  return event;
}

function queryOf(namespace: string, filter: wire.EventFilter | undefined): EventQuery {
  const { kind = "", name = "", type = "", reason = "" } = filter ?? {};
  if (type !== "" && type !== "Normal" && type !== "Warning")
    throw new CoordinatorError("INVALID", `filter.type is "${type}"; it must be Normal or Warning`);
  return { namespace, kind, name, type, reason, sinceMs: toEpochMs(filter?.since) };
}
