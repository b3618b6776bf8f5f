import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import { toEpochMs } from "../model/timestamp.ts";
import type { EventInput } from "./event.ts";
import { coalesceMs, maxCoalesced } from "./limits.ts";

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

/** The events of the last minutes, by what they say: what happens again counts up. */
export class RecentEvents {
  /** Longest not repeated first. */
  readonly #byText = new Map<string, Written>();

  get size(): number {
    return this.#byText.size;
  }

  find(key: string, nowMs: number): Written | undefined {
    const found = this.#byText.get(key);
    return found !== undefined && isRecent(found, nowMs) ? found : undefined;
  }

  note(written: Written, nowMs: number): void {
    const key = sameness(written.record);
    this.#byText.delete(key);
    this.#byText.set(key, written);
    for (const [oldest, entry] of this.#byText) {
      if (this.#byText.size <= maxCoalesced && isRecent(entry, nowMs)) break;
      this.#byText.delete(oldest);
    }
  }

  /** Records up to this sequence number are gone. */
  forgetThrough(sequence: number): void {
    for (const [key, { record }] of this.#byText) {
      if (Number(record.sequence) <= sequence) this.#byText.delete(key);
    }
  }
}

function isRecent({ record }: Written, nowMs: number): boolean {
  return nowMs - (toEpochMs(record.lastAt) ?? 0) < coalesceMs;
}
