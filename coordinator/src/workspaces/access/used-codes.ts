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

/** Codes that may be remembered at a time. Each lives for minutes, and a person makes a few. */
const MAX_CODES = 10_000;
/** Codes live for two minutes, so that few expired ones gather. */
const PURGE_INTERVAL_MS = 600_000;

/** Remembers one-time codes in the store until they expire, so that a restart of the coordinator makes none valid again. */
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

  /** Resolves with false if the code was used before, or if too many used codes are remembered. */
  async use(nonce: string, expiresMs: number): Promise<boolean> {
    if (this.#expiresMs.size >= MAX_CODES) await this.#purge();
    if (this.#expiresMs.has(nonce) || this.#expiresMs.size >= MAX_CODES) return false;
    this.#expiresMs.set(nonce, expiresMs);
    const key = usedCodeKey(nonce);
    const value = encodeRecord(UsedCodeRecord, { expiresAt: toTimestamp(expiresMs) });
    const { succeeded } = await this.#options.store.txn(
      [{ kind: "absent", key }],
      [{ kind: "put", key, value }],
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
      expired.map((nonce) => ({ kind: "delete", key: usedCodeKey(nonce) })),
    );
    for (const nonce of expired) this.#expiresMs.delete(nonce);
  }
}
