import { backOffMs } from "@forage/common/back-off";
import type { Log } from "@forage/common/log";
import { EventRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../model/codec.ts";
import type { EventInput, EventRecorder } from "../model/event.ts";
import { eventKey } from "../model/keys.ts";
import { toEpochMs, toTimestamp } from "../model/timestamp.ts";
import type { Op, Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { coalesceKey, RecentEvents, type WrittenEvent } from "./coalesce.ts";
import type { EventLog, EventPage } from "./event-log.ts";
import {
  BURST_PER_OBJECT,
  DEFAULT_EVENT_LIMITS,
  type EventLimits,
  FLUSH_MS,
  MAX_MESSAGE_LENGTH,
  MAX_PER_WRITE,
  MAX_WAITING,
  REFILL_MS,
  RETRY,
} from "./limits.ts";
import { ObjectRates } from "./rate.ts";
import { Retention } from "./retention.ts";
import { SharedRead } from "./shared-read.ts";
import { readEvents, Watchers } from "./watchers.ts";

export interface EventStoreOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: EventLimits;
}

export interface EventStats {
  /** The number of events since the start, including repetitions. */
  readonly recorded: number;
  /**
   * The number of events dropped since the start, because of the limit of an object or because the
   * store accepted no writes.
   */
  readonly droppedByRate: number;
  readonly droppedByBacklog: number;
  /** The number of stored events. */
  readonly kept: number;
  readonly bytes: number;
}

interface Waiting {
  readonly event: EventInput;
  readonly firstMs: number;
  lastMs: number;
  count: number;
}

interface Written {
  readonly key: string;
  readonly entry: WrittenEvent;
  /** The record that this one replaces. */
  readonly before: WrittenEvent | undefined;
}

/**
 * Writes events to the store in batches in the background, and reads them. A crash loses at most
 * the events of the last `flushMs`. No other code writes below `events/`.
 */
export class EventStore implements EventRecorder, EventLog {
  readonly #options: EventStoreOptions;
  readonly #rates = new ObjectRates<string>();
  readonly #recent = new RecentEvents();
  readonly #retention: Retention;
  readonly #reads = new SharedRead();
  readonly #watchers: Watchers;
  /** Pending events by their content, in the order of their recording. */
  readonly #waiting = new Map<string, Waiting>();
  #newest = 0;
  #failures = 0;
  #backlogReported = 0;
  #writing: Promise<void> | undefined;
  #timer: { readonly atMs: number; readonly cancel: () => void } | undefined;
  #closed = false;
  #recorded = 0;
  #droppedByRate = 0;
  #droppedByBacklog = 0;

  /**
   * Loads the stored events. Numbers continue, and an event that repeats soon after a restart
   * increases its count.
   */
  static async open(options: EventStoreOptions): Promise<EventStore> {
    const store = new EventStore(options);
    await store.#load();
    return store;
  }

  private constructor(options: EventStoreOptions) {
    this.#options = options;
    this.#watchers = new Watchers(options.clock);
    this.#retention = new Retention(options.store, options.limits ?? DEFAULT_EVENT_LIMITS);
  }

  record(input: EventInput): void {
    const nowMs = this.#options.clock.nowMs();
    const event = cut(input);
    const key = coalesceKey(event);
    const known = this.#waiting.get(key);
    if (known !== undefined) {
      known.count++;
      known.lastMs = nowMs;
      this.#recorded++;
      return;
    }
    if (this.#closed || this.#waiting.size >= MAX_WAITING) {
      this.#droppedByBacklog++;
      return;
    }
    if (!this.#rates.tryAcquire(objectOf(event), this.#options.clock.monotonicMs())) {
      this.#droppedByRate++;
      this.#wake(REFILL_MS);
      return;
    }
    this.#add(key, event, nowMs);
  }

  get newest(): number {
    return this.#newest;
  }

  get removedThrough(): number {
    return this.#retention.removedThrough;
  }

  read(after: number, limit: number): Promise<EventPage> {
    const { store } = this.#options;
    return this.#reads.read({ after, limit, newest: this.#newest }, () => readEvents(store, after, limit));
  }

  subscribe(listener: () => void): () => void {
    return this.#watchers.add(listener);
  }

  stats(): EventStats {
    return {
      recorded: this.#recorded,
      droppedByRate: this.#droppedByRate,
      droppedByBacklog: this.#droppedByBacklog,
      kept: this.#retention.count,
      bytes: this.#retention.bytes,
    };
  }

  /** Writes pending events if the store accepts them, and drops later events. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#writing;
    while (this.#waiting.size > 0 && (await this.#write()));
    this.#watchers.close();
  }

  async #load(): Promise<void> {
    const { clock } = this.#options;
    await this.#retention.load((record, bytes) => {
      this.#newest = Number(record.sequence);
      const agoMs = Math.max(0, clock.nowMs() - (toEpochMs(record.lastAt) ?? 0));
      this.#recent.note(coalesceKey(record), { record, bytes }, clock.monotonicMs(), agoMs);
    });
  }

  #add(key: string, event: EventInput, nowMs: number): void {
    this.#recorded++;
    this.#waiting.set(key, { event, firstMs: nowMs, lastMs: nowMs, count: 1 });
    this.#wake(this.#waiting.size >= MAX_PER_WRITE && this.#failures === 0 ? 0 : FLUSH_MS);
  }

  #wake(delayMs: number): void {
    if (this.#closed || this.#writing !== undefined) return;
    const { clock } = this.#options;
    const atMs = clock.monotonicMs() + delayMs;
    // The delay after a failed write is not shortened by new events.
    if (this.#timer !== undefined && (this.#failures > 0 || this.#timer.atMs <= atMs)) return;
    this.#timer?.cancel();
    const cancel = clock.schedule(delayMs, () => {
      this.#timer = undefined;
      this.#writing = this.#flush().finally(() => {
        this.#writing = undefined;
        this.#wakeAgain();
      });
    });
    this.#timer = { atMs, cancel };
  }

  #wakeAgain(): void {
    if (this.#failures > 0) this.#wake(backOffMs(this.#failures, RETRY));
    else if (this.#waiting.size > 0) this.#wake(this.#waiting.size >= MAX_PER_WRITE ? 0 : FLUSH_MS);
    else if (this.#rates.waiting) this.#wake(REFILL_MS);
  }

  async #flush(): Promise<void> {
    this.#reportDropped();
    if (this.#waiting.size > 0) await this.#write();
  }

  /**
   * Writes one transaction. Events that arrive in the meantime wait for the next one. Returns false
   * if the store rejected the transaction; a later call retries it.
   */
  async #write(): Promise<boolean> {
    const { clock, log } = this.#options;
    const batch = firstOf(this.#waiting, MAX_PER_WRITE);
    for (const [key] of batch) this.#waiting.delete(key);
    try {
      const written = await this.#put(batch);
      for (const { key, entry, before } of written) {
        this.#recent.note(key, entry, clock.monotonicMs());
        this.#retention.add(entry.bytes, before?.bytes);
        this.#newest = Number(entry.record.sequence);
      }
      this.#failures = 0;
    } catch (err) {
      this.#putBack(batch);
      this.#failures++;
      log.warn({ event: "events-not-written", err, waiting: this.#waiting.size, failures: this.#failures });
      return false;
    }
    this.#watchers.wake();
    await this.#removeOldest();
    return true;
  }

  async #removeOldest(): Promise<void> {
    try {
      this.#recent.forgetThrough(await this.#retention.removeOldest());
    } catch (err) {
      // The next write retries the removal.
      this.#options.log.warn({ event: "old-events-not-removed", err });
    }
  }

  async #put(batch: readonly (readonly [string, Waiting])[]): Promise<Written[]> {
    const ops: Op[] = [];
    const written: Written[] = [];
    for (const [key, waiting] of batch) {
      const before = this.#recent.find(key, this.#options.clock.monotonicMs());
      const record = recordOf(waiting, before?.record, this.#newest + 1 + written.length);
      const value = this.#encode(record);
      if (value === undefined) continue;
      if (before !== undefined) ops.push({ type: "delete", key: eventKey(Number(before.record.sequence)) });
      ops.push({ type: "put", key: eventKey(Number(record.sequence)), value });
      written.push({ key, entry: { record, bytes: value.byteLength }, before });
    }
    if (ops.length > 0) await this.#options.store.txn([], ops);
    return written;
  }

  /**
   * Encodes a record. Returns undefined for an event that can't be encoded, and drops it, because
   * retries would block all other events.
   */
  #encode(record: EventRecord): Uint8Array | undefined {
    try {
      return encodeRecord(EventRecord, record);
    } catch (err) {
      const { namespace, kind, name, reason } = record;
      this.#options.log.error({ event: "event-dropped", namespace, kind, name, reason, err });
      return undefined;
    }
  }

  /** Returns a batch to the front of the pending events, and merges equal ones. */
  #putBack(batch: readonly (readonly [string, Waiting])[]): void {
    const later = [...this.#waiting];
    this.#waiting.clear();
    for (const [key, waiting] of [...batch, ...later]) {
      const same = this.#waiting.get(key);
      if (same === undefined) this.#waiting.set(key, waiting);
      else {
        same.count += waiting.count;
        same.lastMs = waiting.lastMs;
      }
    }
  }

  /** Records an event for each limited object about its dropped events. */
  #reportDropped(): void {
    const nowMs = this.#options.clock.nowMs();
    for (const { object, dropped } of this.#rates.recovered(this.#options.clock.monotonicMs())) {
      const [namespace = "", kind = "", name = ""] = object.split("\n");
      const message = `${dropped} events of this ${kind} were dropped: the limit is ${BURST_PER_OBJECT} at once and then one every ${REFILL_MS / 1000} s`;
      this.#addWarning({ namespace, kind, name }, message, nowMs);
    }
    const lost = this.#droppedByBacklog - this.#backlogReported;
    if (lost === 0 || this.#failures > 0) return;
    this.#backlogReported = this.#droppedByBacklog;
    const message = `${lost} events were dropped while the store accepted no writes`;
    this.#addWarning({ namespace: "", kind: "coordinator", name: "coordinator" }, message, nowMs);
  }

  #addWarning(about: Pick<EventInput, "namespace" | "kind" | "name">, message: string, nowMs: number): void {
    const event: EventInput = { ...about, type: "Warning", reason: "EventsDropped", message };
    this.#add(coalesceKey(event), event, nowMs);
  }
}

/** Returns a key of the event's object. Namespaces, kinds and names contain no line breaks. */
function objectOf({ namespace, kind, name }: EventInput): string {
  return `${namespace}\n${kind}\n${name}`;
}

/** Returns the first entries without a copy of the others, which can be thousands. */
function firstOf<K, V>(map: ReadonlyMap<K, V>, count: number): [K, V][] {
  const first: [K, V][] = [];
  for (const entry of map) {
    if (first.length === count) break;
    first.push(entry);
  }
  return first;
}

function cut(event: EventInput): EventInput {
  if (event.message.length <= MAX_MESSAGE_LENGTH) return event;
  return { ...event, message: `${event.message.slice(0, MAX_MESSAGE_LENGTH - 1)}…` };
}

function recordOf(
  { event, firstMs, lastMs, count }: Waiting,
  before: EventRecord | undefined,
  sequence: number,
): EventRecord {
  const [, workloadKind = "", workloadName = ""] = event.workload?.split("/") ?? [];
  return {
    sequence: BigInt(sequence),
    namespace: event.namespace,
    kind: event.kind,
    name: event.name,
    type: event.type,
    reason: event.reason,
    message: event.message,
    firstAt: before?.firstAt ?? toTimestamp(firstMs),
    lastAt: toTimestamp(lastMs),
    count: (before?.count ?? 0) + count,
    workloadKind,
    workloadName,
    node: event.node ?? "",
    rolloutId: event.rolloutId ?? "",
  };
}
