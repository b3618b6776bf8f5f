import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import type { EventInput } from "../model/event.ts";
import { ADDED_BETWEEN_SEARCHES, COALESCE_MS, MAX_COALESCED } from "./limits.ts";

/** A stored event record with its size. */
export interface WrittenEvent {
  readonly record: EventRecord;
  readonly bytes: number;
}

/**
 * Returns a key that is equal for events with the same content, of which the later one is a
 * repetition.
 */
export function coalesceKey(event: EventInput | EventRecord): string {
  const { namespace, kind, name, type, reason, message } = event;
  // Only the message can contain line breaks, so different events have different keys.
  return `${namespace}\n${kind}\n${name}\n${type}\n${reason}\n${message}`;
}

interface Recent {
  readonly written: WrittenEvent;
  /** The monotonic time of the last repetition. */
  readonly atMs: number;
}

/**
 * The events of the last minutes by their content, so that repetitions increase a count. Times are
 * monotonic, so that a change of the wall clock joins no events that are hours apart.
 */
export class RecentEvents {
  /** Events ordered by the time of the last repetition, oldest first. */
  readonly #byText = new Map<string, Recent>();
  /** The number of additions since the last search for old records. */
  #added = 0;
  /** The greatest sequence number that no longer exists. */
  #removedThrough = 0;

  get size(): number {
    return this.#byText.size;
  }

  find(key: string, nowMs: number): WrittenEvent | undefined {
    const found = this.#byText.get(key);
    if (found === undefined || !isRecent(found, nowMs)) return undefined;
    return Number(found.written.record.sequence) > this.#removedThrough ? found.written : undefined;
  }

  /** Adds a record with this key that was written `agoMs` ago. */
  note(key: string, written: WrittenEvent, nowMs: number, agoMs = 0): void {
    this.#byText.delete(key);
    this.#byText.set(key, { written, atMs: nowMs - agoMs });
    if (++this.#added < ADDED_BETWEEN_SEARCHES) return;
    this.#added = 0;
    for (const [oldest, entry] of this.#byText) {
      if (this.#byText.size <= MAX_COALESCED && isRecent(entry, nowMs)) break;
      this.#byText.delete(oldest);
    }
  }

  /** Finds no more records up to this sequence number, which no longer exist. They are dropped when they are old. */
  forgetThrough(sequence: number): void {
    this.#removedThrough = Math.max(this.#removedThrough, sequence);
  }
}

function isRecent({ atMs }: Recent, nowMs: number): boolean {
  return nowMs - atMs < COALESCE_MS;
}
