import { type BackOff, backOffMs } from "@forage/common/back-off";
import { pause } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import type { EventLog, EventPage } from "../events/event-log.ts";
import { toEpochMs } from "../model/timestamp.ts";
import { Signal } from "../state/signal.ts";
import type { Clock } from "../time/clock.ts";
import { type Cursor, eventsToSend, MAX_EVENTS_PER_MESSAGE, type Message, messageOf } from "./message.ts";
import type { PostResult } from "./post.ts";
import type { NotificationSettings } from "./settings.ts";

export interface NotifierOptions {
  readonly settings: NotificationSettings;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the stored position; undefined if nothing was sent to the receiver yet. */
  readonly readCursor: () => Promise<Cursor | undefined>;
  readonly writeCursor: (cursor: Cursor) => Promise<void>;
  readonly post: (message: Message, signal: AbortSignal) => Promise<PostResult>;
}

/** The number of messages by their outcome. */
export interface NotifierStats {
  readonly delivered: number;
  readonly dropped: number;
  /** The reason why the last attempt failed; empty if it did not. */
  readonly problem: string;
}

/**
 * The number of unsent events after which the position is stored. It equals the least number of
 * events that the store keeps.
 */
const MAX_UNSTORED = 100;
/** The number of events in one read. */
const PAGE_SIZE = 500;
/**
 * The time for which events are collected before they are sent, because related events occur
 * together.
 */
const GATHER_MS = 1_000;
/**
 * The most attempts for a message, which take seven and a half minutes with the delays in between.
 * A receiver that is away for longer misses the message.
 */
const MAX_ATTEMPTS = 12;
/** The time to wait for an answer at the end, well below the time for a stop of the coordinator. */
const CLOSE_GRACE_MS = 2_000;
const RETRY: BackOff = { baseMs: 1_000, capMs: 60_000 };

/**
 * Sends events to one receiver in order, one message at a time. The position is stored, so that
 * another coordinator continues there. A crash between a delivery and the write of the position
 * repeats one message with the same id.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #written = new Signal();
  readonly #closing = new AbortController();
  readonly #posting = new AbortController();
  readonly #unsubscribe: () => void;
  /** The position for a receiver without a stored one. */
  readonly #first: Cursor;
  readonly #running: Promise<void>;
  /** The number of the last stored event. */
  #stored = 0;
  #delivered = 0;
  #dropped = 0;
  #problem = "";

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#unsubscribe = options.events.subscribe(() => this.#written.raise());
    this.#first = { sequence: options.events.newest, coveredMs: options.clock.nowMs() };
    this.#running = this.#run(this.#closing.signal);
  }

  get stats(): NotifierStats {
    return { delivered: this.#delivered, dropped: this.#dropped, problem: this.#problem };
  }

  /**
   * Stops the notifier. Waits a moment for the answer of a message in progress, which would
   * otherwise be sent again.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#unsubscribe();
    const cancel = this.#options.clock.schedule(CLOSE_GRACE_MS, () => this.#posting.abort());
    await this.#running;
    cancel();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, settings } = this.#options;
    for (let failures = 0; !signal.aborted; ) {
      try {
        await this.#follow(signal);
      } catch (err) {
        if (signal.aborted) return;
        failures++;
        log.warn({ event: "notifications-held-up", notification: settings.name, err });
        await pause(clock, backOffMs(failures, RETRY), signal);
      }
    }
  }

  /** Sends events until the signal aborts. Rejects if the store can't be read or written. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { events, clock } = this.#options;
    let cursor = await this.#begin();
    while (!signal.aborted) {
      const page = await events.read(cursor.sequence, PAGE_SIZE);
      // This is evaluated after the read, before which events may have been removed.
      const missed = cursor.sequence < events.removedThrough;
      const advances = page.through > cursor.sequence;
      if (advances) cursor = await this.#send(page, { cursor, missed }, signal);
      if (page.more && advances) continue;
      await this.#written.wait(signal);
      await pause(clock, GATHER_MS, signal);
    }
  }

  async #begin(): Promise<Cursor> {
    const { events, readCursor } = this.#options;
    const stored = await readCursor();
    // A number that does not exist yet is from before a restore, so sending continues with new
    // events.
    if (stored !== undefined && stored.sequence <= events.newest) {
      this.#stored = stored.sequence;
      return stored;
    }
    await this.#store(this.#first);
    return this.#first;
  }

  async #send(
    { events, more, through }: EventPage,
    { cursor, missed }: { readonly cursor: Cursor; readonly missed: boolean },
    signal: AbortSignal,
  ): Promise<Cursor> {
    const { settings, cluster, clock } = this.#options;
    const chosen = eventsToSend(events, settings, cursor);
    for (let start = 0; start < chosen.length; start += MAX_EVENTS_PER_MESSAGE) {
      const part = chosen.slice(start, start + MAX_EVENTS_PER_MESSAGE);
      const message = messageOf(settings, { events: part, cluster, missed: missed && start === 0 });
      if (!(await this.#deliver(message, signal))) return cursor;
      await this.#store({ ...cursor, sequence: Number(part.at(-1)?.sequence ?? cursor.sequence) });
    }
    // In a backlog, a repetition may be read before its first occurrence.
    const nowMs = clock.nowMs();
    // A date in the far future must not make all later events count as repetitions.
    const times = events.map(({ lastAt }) => Math.min(nowMs, toEpochMs(lastAt) ?? 0));
    const newestMs = Math.max(cursor.coveredMs, ...times);
    const next = { sequence: through, coveredMs: more ? cursor.coveredMs : newestMs };
    if (chosen.length > 0 || through - this.#stored >= MAX_UNSTORED) await this.#store(next);
    return next;
  }

  async #store(cursor: Cursor): Promise<void> {
    await this.#options.writeCursor(cursor);
    this.#stored = cursor.sequence;
  }

  /**
   * Delivers a message. Returns true if it was delivered or dropped, and false if the notifier was
   * closed.
   */
  async #deliver(message: Message, signal: AbortSignal): Promise<boolean> {
    const { clock, log, settings, post } = this.#options;
    for (let attempt = 1; !signal.aborted; attempt++) {
      const result = await post(message, this.#posting.signal);
      this.#problem = result.type === "delivered" ? "" : result.reason;
      if (result.type === "delivered") {
        this.#delivered++;
        return true;
      }
      if (signal.aborted) return false;
      const fields = { notification: settings.name, delivery: message.id, attempt, reason: result.reason };
      if (result.type === "refused" || attempt >= MAX_ATTEMPTS) {
        this.#dropped++;
        log.error({ event: "notification-dropped", ...fields });
        return true;
      }
      log.warn({ event: "notification-failed", ...fields });
      await pause(clock, backOffMs(attempt, RETRY), signal);
    }
    return false;
  }
}
