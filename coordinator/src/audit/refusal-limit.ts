import type { AuditFields } from "@forage/common/audit-chain";

/**
 * The number of refusals of one caller or address that are recorded individually, so that guessing
 * of passwords can't fill the log.
 */
const MAX_RECORDED = 10;
const WINDOW_MS = 60_000;
/** The most callers and addresses that are counted separately. Further ones share one count. */
const MAX_KEYS = 1_000;
const OTHERS = "others";

interface Window {
  readonly endMs: number;
  count: number;
}

/** Limits the entries for refused calls, and counts omitted ones. Times are monotonic. */
export class RefusalLimit {
  readonly #windows = new Map<string, Window>();

  /** Returns the entries to record for a refusal now. */
  note(key: string, refusal: AuditFields, nowMs: number): AuditFields[] {
    const entries = this.#endWindows(nowMs);
    const known = this.#windows.has(key) || this.#windows.size < MAX_KEYS ? key : OTHERS;
    const window = this.#windows.get(known) ?? { endMs: nowMs + WINDOW_MS, count: 0 };
    this.#windows.set(known, window);
    window.count += 1;
    if (window.count <= MAX_RECORDED) entries.push(refusal);
    return entries;
  }

  /** Returns an entry for each ended window with omitted refusals. */
  #endWindows(nowMs: number): AuditFields[] {
    const entries: AuditFields[] = [];
    // All windows have the same length, so the first one ends first.
    for (const [key, { endMs, count }] of this.#windows) {
      if (endMs > nowMs) break;
      this.#windows.delete(key);
      if (count > MAX_RECORDED)
        entries.push({ event: "refusals-left-out", peer: key, count: count - MAX_RECORDED });
    }
    return entries;
  }
}
