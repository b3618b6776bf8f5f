import { randomBytes } from "node:crypto";
import {
  AcmeAccountRecord,
  CertificateRecord,
  ObjectVersionRecord,
  Sealed,
  SigningAuthorityRecord,
} from "@forage/proto/forage/store/v1/store";
import { InstanceSecretsRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ConfigError } from "../config.ts";
import { decodeRecord, encodeRecord } from "../model/codec.ts";
import { ACME_ACCOUNT_PREFIX, PREFIXES, SIGNING_AUTHORITY_KEY, VERSION_KEY_KEY } from "../model/keys.ts";
import type { Store, StoredRecord } from "../store/index.ts";
import { KEY_BYTES, KeyRing, type SecretKey } from "./key-ring.ts";
import { Vault } from "./vault.ts";

/** The number of records read at once. Each holds up to a megabyte. */
const PAGE_SIZE = 16;

/** The vault over the keys; the first time in a cluster, the key for versions is made. Rejects when a key is missing. */
export async function openVault(keys: readonly SecretKey[], store: Store): Promise<Vault> {
  const ring = new KeyRing(keys, randomBytes);
  const stored = await store.get(VERSION_KEY_KEY);
  if (stored !== undefined) {
    const sealed = decodeRecord(Sealed, VERSION_KEY_KEY, stored.value);
    return new Vault(ring, openVersionKey(ring, sealed));
  }
  const versionKey = randomBytes(KEY_BYTES);
  const value = encodeRecord(Sealed, ring.seal(versionKey, VERSION_KEY_KEY));
  const { succeeded } = await store.txn(
    [{ kind: "absent", key: VERSION_KEY_KEY }],
    [{ kind: "put", key: VERSION_KEY_KEY, value }],
  );
  return succeeded ? new Vault(ring, versionKey) : openVault(keys, store);
}

/** Opens the key for versions. A failure means that the key file belongs to another store, which the operator has to correct. */
function openVersionKey(ring: KeyRing, sealed: Sealed): Uint8Array {
  try {
    return ring.open(sealed, VERSION_KEY_KEY);
  } catch (error) {
    throw new ConfigError(
      `secretKeyFile: ${error instanceof Error ? error.message : "the keys don't fit the store"}`,
      {
        cause: error,
      },
    );
  }
}

/** Rewrites what older keys encrypted with the first key; then they can go from the file. Returns how many records. */
export async function reseal(keys: readonly SecretKey[], store: Store): Promise<number> {
  const ring = new KeyRing(keys, randomBytes);
  let count = 0;
  const stored = await store.get(VERSION_KEY_KEY);
  if (stored !== undefined && (await rewrite(stored, resealedKey(stored, ring), store))) count++;
  const kinds: readonly (readonly [string, typeof resealedVersion])[] = [
    [PREFIXES.objectVersions, resealedVersion],
    [PREFIXES.certificates, resealedCertificate],
    [PREFIXES.certificateIssuers, resealedIssuer],
    [PREFIXES.workspaceSecrets, (stored, ring) => resealedField(InstanceSecretsRecord, stored, ring)],
  ];
  for (const [prefix, resealed] of kinds) {
    for (let after: string | undefined, more = true; more; ) {
      const page = await store.range(prefix, { limit: PAGE_SIZE, ...(after !== undefined && { after }) });
      for (const record of page.records) if (await rewrite(record, resealed(record, ring), store)) count++;
      after = page.records.at(-1)?.key;
      more = page.more;
    }
  }
  return count;
}

function resealedCertificate(stored: StoredRecord, ring: KeyRing): Uint8Array | undefined {
  return resealedField(CertificateRecord, stored, ring);
}

function resealedIssuer(stored: StoredRecord, ring: KeyRing): Uint8Array | undefined {
  const { key } = stored;
  if (key.startsWith(ACME_ACCOUNT_PREFIX)) return resealedField(AcmeAccountRecord, stored, ring);
  return key === SIGNING_AUTHORITY_KEY ? resealedField(SigningAuthorityRecord, stored, ring) : undefined;
}

interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

/** Encrypts the field of a record that has one encrypted field among others with the present key. */
function resealedField<T extends { key?: Sealed | undefined }>(
  type: Codec<T>,
  { key, value }: StoredRecord,
  ring: KeyRing,
): Uint8Array | undefined {
  const record = decodeRecord(type, key, value);
  if (record.key === undefined || record.key.keyId === ring.keyId) return undefined;
  return encodeRecord(type, { ...record, key: ring.seal(ring.open(record.key, key), key) });
}

function resealedKey({ key, value }: StoredRecord, ring: KeyRing): Uint8Array | undefined {
  const sealed = decodeRecord(Sealed, key, value);
  return sealed.keyId === ring.keyId
    ? undefined
    : encodeRecord(Sealed, ring.seal(ring.open(sealed, key), key));
}

function resealedVersion({ key, value }: StoredRecord, ring: KeyRing): Uint8Array | undefined {
  const record = decodeRecord(ObjectVersionRecord, key, value);
  if (record.content?.$case !== "sealed" || record.content.value.keyId === ring.keyId) return undefined;
  const sealed = ring.seal(ring.open(record.content.value, key), key);
  return encodeRecord(ObjectVersionRecord, { ...record, content: { $case: "sealed", value: sealed } });
}

/** One that changed meanwhile was written with the first key already. */
async function rewrite(record: StoredRecord, value: Uint8Array | undefined, store: Store): Promise<boolean> {
  if (value === undefined) return false;
  const { succeeded } = await store.txn(
    [{ kind: "modRevision", key: record.key, revision: record.modRevision }],
    [{ kind: "put", key: record.key, value }],
  );
  return succeeded;
}
