import { createHash, generateKeyPairSync } from "node:crypto";
import { AcmeAccountRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord, encodeRecord } from "../../model/codec.ts";
import { ACME_ACCOUNT_PREFIX } from "../../model/keys.ts";
import type { Vault } from "../../objects/vault.ts";
import type { Store } from "../../store/index.ts";

/** The coordinator's account with an authority. */
export interface Account {
  readonly keyPem: string;
  /** The URL of the account; empty until the authority has registered it. */
  readonly url: string;
  /** The contacts last sent to the authority, such as "mailto:ops@example.com". */
  readonly contacts: readonly string[];
}

export interface AccountsOptions {
  readonly store: Store;
  readonly vault: Vault;
  readonly directory: string;
}

/**
 * Stores the account with the authority of one directory URL. Its key is encrypted and stored
 * before it is sent to the authority.
 */
export class AccountRecords {
  readonly #options: AccountsOptions;
  readonly #key: string;

  constructor(options: AccountsOptions) {
    this.#options = options;
    const hash = createHash("sha256").update(options.directory).digest("hex").slice(0, 32);
    this.#key = `${ACME_ACCOUNT_PREFIX}${hash}`;
  }

  /** Loads the account, or creates and stores it if there is none. */
  async load(): Promise<Account> {
    const { store, vault } = this.#options;
    const stored = await store.get(this.#key);
    if (stored !== undefined) {
      const { key, url, contacts } = decodeRecord(AcmeAccountRecord, this.#key, stored.value);
      if (key !== undefined) return { keyPem: vault.openText(key, this.#key), url, contacts };
    }
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const keyPem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const account = { keyPem, url: "", contacts: [] };
    await this.save(account);
    return account;
  }

  async save({ keyPem, url, contacts }: Account): Promise<void> {
    const { store, vault, directory } = this.#options;
    const value = encodeRecord(AcmeAccountRecord, {
      directory,
      url,
      key: vault.sealText(keyPem, this.#key),
      contacts: [...contacts],
    });
    await store.txn([], [{ type: "put", key: this.#key, value }]);
  }
}
