import { SigningAuthorityRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord, encodeRecord } from "../../model/codec.ts";
import { SIGNING_AUTHORITY_KEY as key } from "../../model/keys.ts";
import type { Vault } from "../../objects/vault.ts";
import type { Store } from "../../store/index.ts";
import { type AuthorityPem, createAuthority, type MakeOptions } from "./authority.ts";

export interface KeepOptions {
  readonly store: Store;
  readonly vault: Vault;
  readonly cluster: string;
  readonly make: () => MakeOptions;
}

/**
 * Returns the cluster's development authority. The first call creates it, and stores its key
 * encrypted.
 */
export async function keepAuthority(options: KeepOptions): Promise<AuthorityPem> {
  const { store, vault, cluster, make } = options;
  const stored = await store.get(key);
  if (stored !== undefined) {
    const record = decodeRecord(SigningAuthorityRecord, key, stored.value);
    if (record.key !== undefined)
      return { certPem: record.certificatePem, keyPem: vault.openText(record.key, key) };
  }
  const made = await createAuthority(cluster, make());
  const value = encodeRecord(SigningAuthorityRecord, {
    certificatePem: made.certPem,
    key: vault.sealText(made.keyPem, key),
  });
  const { succeeded } = await store.txn([{ type: "absent", key }], [{ type: "put", key, value }]);
  return succeeded ? made : keepAuthority(options);
}
