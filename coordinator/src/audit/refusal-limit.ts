import type { AuditFields } from "@forage/common/audit-chain";

/** Refusals of one caller or address that are recorded one by one. Somebody who tries passwords must not fill the log. */
const MAX_RECORDED = 10;
const WINDOW_MS = 60_000;
/** The limit of callers and addresses that are counted apart. Those beyond share one count. */
const MAX_KEYS = 1_000;
const OTHERS = "others";

interface Window {
  readonly endMs: number;
  count: number;
}

/** Limits the entries for refused calls. Those that are left out are counted. Times are monotonic. */
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

  /** Returns an entry for each window that has ended and from which refusals were left out. */
  #endWindows(nowMs: number): AuditFields[] {
    const entries: AuditFields[] = [];
    // Windows are as long as one another, so that the first one ends first.
    for (const [key, { endMs, count }] of this.#windows) {
      if (endMs > nowMs) break;
      this.#windows.delete(key);
      if (count > MAX_RECORDED)
        entries.push({ event: "refusals-left-out", peer: key, count: count - MAX_RECORDED });
    }
    return entries;
  }
}
