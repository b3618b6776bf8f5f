import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import type { EventInput } from "../model/event.ts";
import { COALESCE_MS, MAX_COALESCED } from "./limits.ts";

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
  return JSON.stringify([namespace, kind, name, type, reason, message]);
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

  get size(): number {
    return this.#byText.size;
  }

  find(key: string, nowMs: number): WrittenEvent | undefined {
    const found = this.#byText.get(key);
    return found !== undefined && isRecent(found, nowMs) ? found.written : undefined;
  }

  /** Adds a record that was written `agoMs` ago. */
  note(written: WrittenEvent, nowMs: number, agoMs = 0): void {
    const key = coalesceKey(written.record);
    this.#byText.delete(key);
    this.#byText.set(key, { written, atMs: nowMs - agoMs });
    for (const [oldest, entry] of this.#byText) {
      if (this.#byText.size <= MAX_COALESCED && isRecent(entry, nowMs)) break;
      this.#byText.delete(oldest);
    }
  }

  /** Drops records up to this sequence number, which no longer exist. */
  forgetThrough(sequence: number): void {
    for (const [key, { written }] of this.#byText) {
      if (Number(written.record.sequence) <= sequence) this.#byText.delete(key);
    }
  }
}

function isRecent({ atMs }: Recent, nowMs: number): boolean {
  return nowMs - atMs < COALESCE_MS;
}
