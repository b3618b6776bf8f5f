import { randomBytes } from "node:crypto";
import { type MonotonicClock, pause } from "@forage/common/clock";
import { messageOf } from "@forage/common/message-of";
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
import {
  ACME_ACCOUNT_PREFIX,
  AUTHORITY_KEY,
  PREFIXES,
  SIGNING_AUTHORITY_KEY,
  VERSION_KEY_KEY,
} from "../model/keys.ts";
import type { Store, StoredRecord } from "../store/index.ts";
import { KEY_BYTES, KeyRing, type SecretKey } from "./key-ring.ts";
import { Vault } from "./vault.ts";

/** The number of records that are read at once. Each may have up to a megabyte. */
const PAGE_SIZE = 16;
/** The delay between attempts to read the version key. A leader creates it shortly after the store. */
const RETRY_MS = 200;

/**
 * Opens the vault with these keys. Creates the version key when the cluster starts for the first time. Rejects if a key is
 * missing.
 */
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
    [{ type: "absent", key: VERSION_KEY_KEY }],
    [{ type: "put", key: VERSION_KEY_KEY, value }],
  );
  return succeeded ? new Vault(ring, versionKey) : openVault(keys, store);
}

/** Reports whether the store has secrets, which need existing keys. */
export async function hasSecrets(store: Store): Promise<boolean> {
  return (await store.get(VERSION_KEY_KEY)) !== undefined;
}

/**
 * Opens the vault of a store to which another coordinator writes. Waits until that coordinator has created the version key,
 * at its first start. @throws ConfigError if the keys belong to another store.
 */
export async function openFollowedVault(
  keys: readonly SecretKey[],
  store: Store,
  clock: MonotonicClock,
): Promise<Vault> {
  while (!(await hasSecrets(store))) await pause(clock, RETRY_MS, new AbortController().signal);
  return openVault(keys, store);
}

/**
 * Decrypts the version key. A failure means that the key file belongs to another store, which the operator has to correct.
 */
function openVersionKey(ring: KeyRing, sealed: Sealed): Uint8Array {
  try {
    return ring.open(sealed, VERSION_KEY_KEY);
  } catch (error) {
    throw new ConfigError(`secretKeyFile: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

export interface ResealResult {
  readonly rewritten: number;
  /** Records that can't be decoded or are encrypted with a missing key. They are not changed. */
  readonly unreadable: readonly { readonly key: string; readonly error: unknown }[];
  /** The error of the first failed write, after which no more records were written. The next start continues. */
  readonly stopped?: unknown;
}

/**
 * Encrypts all records again with the first key, so that older keys can be removed from the file. Records that can't be
 * decoded are skipped, and failed writes don't prevent the start.
 */
export async function reseal(keys: readonly SecretKey[], store: Store): Promise<ResealResult> {
  const ring = new KeyRing(keys, randomBytes);
  const unreadable: { readonly key: string; readonly error: unknown }[] = [];
  let rewritten = 0;
  /** Returns the record encrypted with the first key. Undefined: it is already, or it can't be decoded. */
  const attempt = (
    record: StoredRecord,
    resealed: (record: StoredRecord, ring: KeyRing) => Uint8Array | undefined,
  ): Uint8Array | undefined => {
    try {
      return resealed(record, ring);
    } catch (error) {
      unreadable.push({ key: record.key, error });
      return undefined;
    }
  };
  try {
    for await (const { record, resealed } of sealedRecords(store))
      if (await rewrite(record, attempt(record, resealed), store)) rewritten++;
  } catch (stopped) {
    return { rewritten, unreadable, stopped };
  }
  return { rewritten, unreadable };
}

/** Yields every record with an encrypted part, with a function that encrypts it with the first key. */
async function* sealedRecords(store: Store) {
  for (const key of [VERSION_KEY_KEY, AUTHORITY_KEY]) {
    const stored = await store.get(key);
    if (stored !== undefined) yield { record: stored, resealed: resealedKey };
  }
  const kinds: readonly (readonly [string, typeof resealedVersion])[] = [
    [PREFIXES.objectVersions, resealedVersion],
    [PREFIXES.certificates, resealedCertificate],
    [PREFIXES.certificateIssuers, resealedIssuer],
    [PREFIXES.workspaceSecrets, (stored, ring) => resealedField(InstanceSecretsRecord, stored, ring)],
  ];
  for (const [prefix, resealed] of kinds) {
    for (let after: string | undefined, more = true; more; ) {
      const page = await store.range(prefix, { limit: PAGE_SIZE, ...(after !== undefined && { after }) });
      for (const record of page.records) yield { record, resealed };
      after = page.records.at(-1)?.key;
      more = page.more;
    }
  }
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

/** Encrypts the encrypted field of a record again with the first key. */
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

/** Writes the record unless it has changed, because a changed record was encrypted with the first key. */
async function rewrite(record: StoredRecord, value: Uint8Array | undefined, store: Store): Promise<boolean> {
  if (value === undefined) return false;
  const { succeeded } = await store.txn(
    [{ type: "mod-revision", key: record.key, revision: record.modRevision }],
    [{ type: "put", key: record.key, value }],
  );
  return succeeded;
}
