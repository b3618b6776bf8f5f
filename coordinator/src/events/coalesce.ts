import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import type { EventInput } from "../model/event.ts";
import { COALESCE_MS, MAX_COALESCED } from "./limits.ts";

/** A record that was written, with its size. */
export interface Written {
  readonly record: EventRecord;
  readonly bytes: number;
}

/** Two events of which the second is the first again. */
export function sameness(event: EventInput | EventRecord): string {
  const { namespace, kind, name, type, reason, message } = event;
  return JSON.stringify([namespace, kind, name, type, reason, message]);
}

interface Recent {
  readonly written: Written;
  /** The time of its last repetition, on the monotonic clock. */
  readonly atMs: number;
}

/**
 * The events of the last minutes, by what they say: what happens again counts up. Times are of the monotonic clock, so
 * that setting the wall clock joins no events that are hours apart.
 */
export class RecentEvents {
  /** Longest not repeated first. */
  readonly #byText = new Map<string, Recent>();

  get size(): number {
    return this.#byText.size;
  }

  find(key: string, nowMs: number): Written | undefined {
    const found = this.#byText.get(key);
    return found !== undefined && isRecent(found, nowMs) ? found.written : undefined;
  }

  /** Notes what was written so long ago. */
  note(written: Written, nowMs: number, agoMs = 0): void {
    const key = sameness(written.record);
    this.#byText.delete(key);
    this.#byText.set(key, { written, atMs: nowMs - agoMs });
    for (const [oldest, entry] of this.#byText) {
      if (this.#byText.size <= MAX_COALESCED && isRecent(entry, nowMs)) break;
      this.#byText.delete(oldest);
    }
  }

  /** Records up to this sequence number are gone. */
  forgetThrough(sequence: number): void {
    for (const [key, { written }] of this.#byText) {
      if (Number(written.record.sequence) <= sequence) this.#byText.delete(key);
    }
  }
}

function isRecent({ atMs }: Recent, nowMs: number): boolean {
  return nowMs - atMs < COALESCE_MS;
}
