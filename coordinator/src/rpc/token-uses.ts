import type { Log } from "@forage/common/log";
import { decodeJsonRecord, encodeJsonRecord } from "../model/codec.ts";
import { apiTokenKey, apiTokenUseKey } from "../model/keys.ts";
import type { Store } from "../store/index.ts";

export interface TokenUsesOptions {
  readonly store: Store;
  readonly nowMs: () => number;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  readonly log: Log;
}

interface UseRecord {
  readonly lastUsedAtMs: number;
}

/**
 * The interval of writes. Last uses help operators to find unneeded tokens, for which a precision
 * of a minute is enough.
 */
const FLUSH_MS = 60_000;

/**
 * Records when API tokens were last used: immediately in memory, and once a minute in the store.
 */
export class TokenUses {
  readonly #options: TokenUsesOptions;
  readonly #recent = new Map<string, number>();
  readonly #unwritten = new Set<string>();
  #cancel: (() => void) | undefined;

  constructor(options: TokenUsesOptions) {
    this.#options = options;
  }

  /** The number of tokens whose last use is in memory. */
  get size(): number {
    return this.#recent.size;
  }

  /** Records a use. Must be called for verified tokens only, because each id occupies memory. */
  used(id: string): void {
    this.#recent.set(id, this.#options.nowMs());
    this.#unwritten.add(id);
    this.#cancel ??= this.#options.schedule(FLUSH_MS, () => {
      this.#cancel = undefined;
      void this.flush();
    });
  }

  /**
   * Returns when the token was last used, in milliseconds since the epoch; undefined if it never
   * was.
   */
  async lastUsedMs(id: string): Promise<number | undefined> {
    const recent = this.#recent.get(id);
    if (recent !== undefined) return recent;
    const key = apiTokenUseKey(id);
    const stored = await this.#options.store.get(key);
    return stored && decodeJsonRecord<UseRecord>(key, stored.value).lastUsedAtMs;
  }

  /**
   * Writes pending uses. A failure is logged and not retried: the next use writes the token again.
   */
  async flush(): Promise<void> {
    const ids = [...this.#unwritten];
    this.#unwritten.clear();
    await this.#write(ids);
  }

  async close(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    await this.flush();
  }

  async #write(ids: readonly string[]): Promise<void> {
    const { store, log } = this.#options;
    try {
      for (const id of ids) {
        const lastUsedAtMs = this.#recent.get(id);
        if (lastUsedAtMs === undefined) continue;
        const value = encodeJsonRecord({ lastUsedAtMs } satisfies UseRecord);
        // The condition keeps a token that was revoked since from leaving a record behind.
        const { succeeded } = await store.txn(
          [{ type: "exists", key: apiTokenKey(id) }],
          [{ type: "put", key: apiTokenUseKey(id), value }],
        );
        // Stored uses are read from the store, so memory holds only the uses of the last minute.
        if (!succeeded || this.#recent.get(id) === lastUsedAtMs) this.#recent.delete(id);
      }
    } catch (err) {
      log.warn({ event: "token-uses-not-stored", err });
    }
  }
}
