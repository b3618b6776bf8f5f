import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import { toEpochMs } from "../model/timestamp.ts";
import { Signal } from "../state/signal.ts";
import type { EventLog, EventPage } from "./event-log.ts";

/** Selects events. Empty fields select all. */
export interface EventQuery {
  readonly namespace: string;
  /** The kind of the object. Together with a name it also selects the events of a workload's pods. */
  readonly kind: string;
  readonly name: string;
  readonly type: string;
  readonly reason: string;
  readonly sinceMs: number | undefined;
}

export interface EventBatch {
  readonly events: readonly EventRecord[];
  /** The last number that the query has covered. */
  readonly sequence: number;
  /** Whether events before these, which the reader has not seen, are no longer kept. */
  readonly gap: boolean;
}

/** The number of events evaluated at once, so that other work can run in between. */
const PAGE_SIZE = 500;

/** Pure. */
export function matches(query: EventQuery, event: EventRecord): boolean {
  const { namespace, kind, name, type, reason, sinceMs } = query;
  return (
    (namespace === "" || event.namespace === namespace) &&
    (type === "" || event.type === type) &&
    (reason === "" || event.reason === reason) &&
    (sinceMs === undefined || (toEpochMs(event.lastAt) ?? 0) >= sinceMs) &&
    (isAbout(kind, name, event.kind, event.name) ||
      isAbout(kind, name, event.workloadKind, event.workloadName))
  );
}

/** The newest `limit` that match and come after the number, oldest first. */
export async function newestEvents(
  log: EventLog,
  query: EventQuery,
  after: number,
  limit: number,
): Promise<EventBatch> {
  let found: EventRecord[] = [];
  let sequence = after;
  for (let more = true; more; ) {
    const page = await log.read(sequence, PAGE_SIZE);
    found = [...found, ...page.events.filter((event) => matches(query, event))].slice(-limit);
    sequence = page.through;
    more = page.more;
  }
  return { events: found, sequence, gap: after > 0 && after < log.removedThrough };
}

/**
 * Yields the matching events after the number, and then new ones until the signal. The first batch comes at once, even if it is
 * empty. A slow reader continues from the store, so nothing piles up in memory. `select` may share its answers among readers.
 */
export async function* followEvents(
  log: EventLog,
  query: EventQuery,
  after: number | undefined,
  signal: AbortSignal,
  select: (query: EventQuery, page: EventPage) => readonly EventRecord[] = matching,
): AsyncGenerator<EventBatch> {
  const written = new Signal();
  const stop = log.subscribe(() => written.raise());
  try {
    // A number that was never given comes from before a restore: what is new begins now.
    let sequence = Math.min(after ?? log.newest, log.newest);
    let first = true;
    while (!signal.aborted) {
      const gap = sequence < log.removedThrough && !(first && sequence === 0);
      const page = await log.read(sequence, PAGE_SIZE);
      sequence = page.through;
      const events = select(query, page);
      if (first || gap || events.length > 0) yield { events, sequence, gap };
      first = false;
      if (!page.more) await written.wait(signal);
    }
  } finally {
    stop();
  }
}

/** Returns the events of a page that the query selects. */
export function matching(query: EventQuery, page: EventPage): readonly EventRecord[] {
  return page.events.filter((event) => matches(query, event));
}

function isAbout(kind: string, name: string, eventKind: string, eventName: string): boolean {
  return (kind === "" || kind === eventKind) && (name === "" || name === eventName);
}
