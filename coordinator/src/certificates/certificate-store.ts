import type { Log } from "@forage/common/log";
import { CertificateRecord, IssuerPauseRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../errors.ts";
import { decodeRecord, encodeRecord } from "../model/codec.ts";
import { certificateKey, ISSUER_PAUSE_KEY, PREFIXES } from "../model/keys.ts";
import { toEpochMs, toTimestamp } from "../model/timestamp.ts";
import type { Vault } from "../objects/vault.ts";
import type { Store } from "../store/index.ts";
import type { CertificateState, Pause } from "./certificate-state.ts";
import { certificateStateOf, encodeCertificateState } from "./certificate-state-record.ts";

/** The number of records in one read; each has a few kilobytes. */
const PAGE_SIZE = 100;

/** Stores the states of certificates. No other code writes below `certificates/`. */
export class CertificateStore {
  readonly #store: Store;
  readonly #vault: Vault;
  readonly #log: Log;

  constructor(parts: { readonly store: Store; readonly vault: Vault; readonly log: Log }) {
    this.#store = parts.store;
    this.#vault = parts.vault;
    this.#log = parts.log;
  }

  /**
   * Loads all states. An unreadable state is logged and skipped, and a new certificate replaces it.
   */
  async load(): Promise<Map<string, CertificateState>> {
    const states = new Map<string, CertificateState>();
    for (let after: string | undefined, more = true; more; ) {
      const options = { limit: PAGE_SIZE, ...(after !== undefined && { after }) };
      const page = await this.#store.range(PREFIXES.certificates, options);
      for (const { key, value } of page.records) {
        const state = this.#read(key, value);
        if (state !== undefined) states.set(state.hostname, state);
      }
      after = page.records.at(-1)?.key;
      more = page.more;
    }
    return states;
  }

  async save(state: CertificateState): Promise<void> {
    const key = certificateKey(state.hostname);
    await this.#store.txn([], [{ type: "put", key, value: encodeCertificateState(state, this.#vault) }]);
  }

  async forget(hostname: string): Promise<void> {
    await this.#store.txn([], [{ type: "delete", key: certificateKey(hostname) }]);
  }

  /** Loads the pause of the issuer. An unreadable one is logged and ignored. */
  async loadPause(): Promise<Pause | undefined> {
    const key = ISSUER_PAUSE_KEY;
    const stored = await this.#store.get(key);
    if (stored === undefined) return undefined;
    try {
      const { failures, error, until, asked } = decodeRecord(IssuerPauseRecord, key, stored.value);
      return { failures, error, untilMs: toEpochMs(until) ?? 0, isRequested: asked };
    } catch (err) {
      this.#log.error({ event: "issuer-pause-unreadable", err, key });
      return undefined;
    }
  }

  async savePause(pause: Pause | undefined): Promise<void> {
    const key = ISSUER_PAUSE_KEY;
    if (pause === undefined) {
      await this.#store.txn([], [{ type: "delete", key }]);
      return;
    }
    const { failures, error, untilMs, isRequested } = pause;
    const value = encodeRecord(IssuerPauseRecord, {
      failures,
      error,
      until: toTimestamp(untilMs),
      asked: isRequested,
    });
    await this.#store.txn([], [{ type: "put", key, value }]);
  }

  #read(key: string, value: Uint8Array): CertificateState | undefined {
    try {
      const state = certificateStateOf(decodeRecord(CertificateRecord, key, value), this.#vault);
      if (certificateKey(state.hostname) === key) return state;
      throw new CoordinatorError("INTERNAL", `${key} contains the state of ${state.hostname}`);
    } catch (err) {
      this.#log.error({ event: "certificate-record-unreadable", err, key });
      return undefined;
    }
  }
}
