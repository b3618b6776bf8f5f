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

/** Records read in one piece; each holds a few kilobytes. */
const PAGE_SIZE = 100;

/** Stores the state of certificates. It is the only writer below `certificates/`. */
export class CertificateStore {
  readonly #store: Store;
  readonly #vault: Vault;
  readonly #log: Log;

  constructor(parts: { readonly store: Store; readonly vault: Vault; readonly log: Log }) {
    this.#store = parts.store;
    this.#vault = parts.vault;
    this.#log = parts.log;
  }

  /** Loads all states. An unreadable one is logged and skipped, and a new certificate replaces it. */
  async load(): Promise<Map<string, CertificateState>> {
    const holdings = new Map<string, CertificateState>();
    for (let after: string | undefined, more = true; more; ) {
      const options = { limit: PAGE_SIZE, ...(after !== undefined && { after }) };
      const page = await this.#store.range(PREFIXES.certificates, options);
      for (const { key, value } of page.records) {
        const holding = this.#read(key, value);
        if (holding !== undefined) holdings.set(holding.hostname, holding);
      }
      after = page.records.at(-1)?.key;
      more = page.more;
    }
    return holdings;
  }

  async save(holding: CertificateState): Promise<void> {
    const key = certificateKey(holding.hostname);
    await this.#store.txn([], [{ kind: "put", key, value: encodeCertificateState(holding, this.#vault) }]);
  }

  async forget(hostname: string): Promise<void> {
    await this.#store.txn([], [{ kind: "delete", key: certificateKey(hostname) }]);
  }

  /** Loads the pause of the issuer. An unreadable one is logged and counts as none. */
  async loadPause(): Promise<Pause | undefined> {
    const key = ISSUER_PAUSE_KEY;
    const stored = await this.#store.get(key);
    if (stored === undefined) return undefined;
    try {
      const { failures, error, until, asked } = decodeRecord(IssuerPauseRecord, key, stored.value);
      return { failures, error, untilMs: toEpochMs(until) ?? 0, asked };
    } catch (err) {
      this.#log.error({ event: "issuer-pause-unreadable", err, key });
      return undefined;
    }
  }

  async savePause(pause: Pause | undefined): Promise<void> {
    const key = ISSUER_PAUSE_KEY;
    if (pause === undefined) {
      await this.#store.txn([], [{ kind: "delete", key }]);
      return;
    }
    const { failures, error, untilMs, asked } = pause;
    const value = encodeRecord(IssuerPauseRecord, { failures, error, until: toTimestamp(untilMs), asked });
    await this.#store.txn([], [{ kind: "put", key, value }]);
  }

  #read(key: string, value: Uint8Array): CertificateState | undefined {
    try {
      const holding = certificateStateOf(decodeRecord(CertificateRecord, key, value), this.#vault);
      if (certificateKey(holding.hostname) === key) return holding;
      throw new CoordinatorError("INTERNAL", `${key} holds what is of ${holding.hostname}`);
    } catch (err) {
      this.#log.error({ event: "certificate-record-unreadable", err, key });
      return undefined;
    }
  }
}
