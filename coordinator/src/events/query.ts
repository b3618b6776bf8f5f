import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import { toEpochMs } from "../model/timestamp.ts";
import { Signal } from "../state/signal.ts";
import type { EventLog, EventPage } from "./event-log.ts";

/** Selects events. Empty fields match all events. */
export interface EventQuery {
  readonly namespace: string;
  /**
   * The kind of the object. Together with a name, it also selects the events of a workload's pods.
   */
  readonly kind: string;
  readonly name: string;
  readonly type: string;
  readonly reason: string;
  readonly sinceMs: number | undefined;
}

export interface EventBatch {
  readonly events: readonly EventRecord[];
  /** The number up to which the query has been evaluated. */
  readonly sequence: number;
  /** Whether earlier events, which the reader has not received, were removed. */
  readonly gap: boolean;
}

/** The number of events evaluated at a time, so that other work can run in between. */
const PAGE_SIZE = 500;

/** Reports whether the event matches all conditions of the query. */
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

/** Returns the newest `limit` matching events after the number, oldest first. */
export async function newestEvents(
  log: EventLog,
  query: EventQuery,
  after: number,
  limit: number,
): Promise<EventBatch> {
  let found: EventRecord[] = [];
  let sequence = after;
  let gap = false;
  for (let more = true; more; ) {
    const page = await log.read(sequence, PAGE_SIZE);
    // This is evaluated after each read, because events may have been removed before it. Events
    // that were already read may be removed later.
    gap ||= sequence > 0 && sequence < log.removedThrough;
    found = [...found, ...page.events.filter((event) => matches(query, event))].slice(-limit);
    sequence = page.through;
    more = page.more;
  }
  return { events: found, sequence, gap };
}

/**
 * Yields the matching events after the number, and then new ones until the signal aborts. The first
 * batch is yielded immediately, even if it is empty. A slow reader continues from the store, so
 * nothing accumulates in memory. `select` may share its results among readers.
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
    // A number that does not exist yet is from before a restore, so reading continues with new
    // events.
    let sequence = Math.min(after ?? log.newest, log.newest);
    let first = true;
    while (!signal.aborted) {
      const page = await log.read(sequence, PAGE_SIZE);
      // This is evaluated after the read, before which events may have been removed.
      const gap = sequence < log.removedThrough && !(first && sequence === 0);
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
