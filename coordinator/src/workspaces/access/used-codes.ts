import type { Log } from "@forage/common/log";
import { UsedCodeRecord } from "@forage/proto/forage/workspaces/v1/records";
import { decodeRecord, encodeRecord } from "../../model/codec.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { usedCodeKey, WORKSPACE_PREFIXES } from "../keys.ts";

export interface UsedCodesOptions {
  readonly store: Store;
  readonly clock: Pick<Clock, "nowMs" | "schedule">;
  readonly log: Pick<Log, "warn">;
}

/**
 * The most codes that are remembered at a time. Each lives for two minutes, and a person makes only
 * a few.
 */
const MAX_CODES = 10_000;
/** The interval between deletions of expired codes. */
const PURGE_INTERVAL_MS = 600_000;

/**
 * Remembers used one-time codes in the store until they expire, so that none can be used again
 * after a restart of the coordinator.
 */
export class UsedCodes {
  readonly #options: UsedCodesOptions;
  readonly #expiresMs: Map<string, number>;
  #cancel = (): void => {};
  #purging: Promise<void> = Promise.resolve();

  private constructor(options: UsedCodesOptions, expiresMs: Map<string, number>) {
    this.#options = options;
    this.#expiresMs = expiresMs;
    this.#later();
  }

  static async open(options: UsedCodesOptions): Promise<UsedCodes> {
    const { records } = await options.store.range(WORKSPACE_PREFIXES.usedCodes, { limit: MAX_CODES });
    const known = records.map(({ key, value }) => {
      const { expiresAt } = decodeRecord(UsedCodeRecord, key, value);
      return [key.slice(WORKSPACE_PREFIXES.usedCodes.length), toEpochMs(expiresAt) ?? 0] as const;
    });
    return new UsedCodes(options, new Map(known));
  }

  /**
   * Marks a code as used. Resolves with false if it was used before, or if {@link MAX_CODES} codes
   * are remembered.
   */
  async use(nonce: string, expiresMs: number): Promise<boolean> {
    if (this.#expiresMs.size >= MAX_CODES) await this.#purge();
    if (this.#expiresMs.has(nonce) || this.#expiresMs.size >= MAX_CODES) return false;
    this.#expiresMs.set(nonce, expiresMs);
    const key = usedCodeKey(nonce);
    const value = encodeRecord(UsedCodeRecord, { expiresAt: toTimestamp(expiresMs) });
    const { succeeded } = await this.#options.store.txn(
      [{ type: "absent", key }],
      [{ type: "put", key, value }],
    );
    return succeeded;
  }

  async close(): Promise<void> {
    this.#cancel();
    await this.#purging;
  }

  #later(): void {
    this.#cancel = this.#options.clock.schedule(PURGE_INTERVAL_MS, () => {
      this.#purging = this.#purge().catch((err: unknown) =>
        this.#options.log.warn({ event: "used-codes-not-purged", err }),
      );
      this.#later();
    });
  }

  async #purge(): Promise<void> {
    const nowMs = this.#options.clock.nowMs();
    const expired = [...this.#expiresMs].filter(([, endsMs]) => endsMs <= nowMs).map(([nonce]) => nonce);
    if (expired.length === 0) return;
    await this.#options.store.txn(
      [],
      expired.map((nonce) => ({ type: "delete", key: usedCodeKey(nonce) })),
    );
    for (const nonce of expired) this.#expiresMs.delete(nonce);
  }
}
