import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { messageOf } from "@forage/common/message-of";
import type { NoteDamage } from "../damage-reports.ts";
import { makePrivateDirectory, setAside, writeFilesDurably } from "./durable-files.ts";

export const KEY_FILE = "journal.key";

const KEY_BYTES = 32;
const ID_BYTES = 8;
// The nonce size that GCM is designed for. Random nonces are safe for 4 × 10⁹ records with one key.
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";

/** Encrypts the journal's records of pods with AES-256-GCM, bound to the pod's uid. The key's id precedes the data. */
export class JournalKey {
  readonly #key: Buffer;
  readonly #id: Buffer;
  /** The origin of the key, for messages. */
  readonly source: string;
  /** Writes the key. Undefined once it is on disk. */
  #store: (() => Promise<void>) | undefined;
  #storing: Promise<void> | undefined;

  /** @param store writes a key that is not on disk yet. It is called before the first record is sealed, until it succeeds. */
  constructor(key: Buffer, source: string, store?: () => Promise<void>) {
    this.#store = store;
    if (key.length !== KEY_BYTES) throw new Error(`a key has ${KEY_BYTES} bytes, not ${key.length}`);
    this.#key = key;
    this.#id = createHash("sha256").update("forage journal key\0").update(key).digest().subarray(0, ID_BYTES);
    this.source = source;
  }

  /** Returns an identifier that reveals nothing about the key. */
  get id(): string {
    return this.#id.toString("hex");
  }

  /**
   * Encrypts a record. Rejects if the key is not on disk and can't be written, because the record would be unreadable
   * after a restart.
   */
  async seal(uid: string, plain: Uint8Array): Promise<Buffer> {
    await this.store();
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(boundTo(uid));
    return Buffer.concat([this.#id, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  }

  /** Resolves once the key is on disk. Rejects if it can't be written. */
  async store(): Promise<void> {
    if (this.#store === undefined) return;
    this.#storing ??= this.#store().finally(() => {
      this.#storing = undefined;
    });
    await this.#storing;
    this.#store = undefined;
  }

  /** Decrypts a record. Throws WrongKeyError for another key, or an error if the bytes were not sealed for this uid. */
  unseal(uid: string, sealed: Buffer): Buffer {
    const nonceEnd = ID_BYTES + NONCE_BYTES;
    if (sealed.length < nonceEnd + TAG_BYTES) throw new Error("too short to be encrypted");
    const id = sealed.subarray(0, ID_BYTES);
    if (!id.equals(this.#id)) throw new WrongKeyError(id.toString("hex"), this);
    const decipher = createDecipheriv(CIPHER, this.#key, sealed.subarray(ID_BYTES, nonceEnd), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(boundTo(uid));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(nonceEnd, -TAG_BYTES)), decipher.final()]);
    } catch (cause) {
      throw new Error("it was changed, or written for another pod", { cause });
    }
  }
}

/** The record may be intact, but was encrypted with another key. */
export class WrongKeyError extends Error {
  constructor(requiredId: string, key: JournalKey) {
    super(
      `it is encrypted with key ${requiredId}, and this is key ${key.id} (${key.source}): ` +
        "put the former key back and restart, or wait until the coordinator sends the pod again",
    );
    this.name = "WrongKeyError";
  }
}

/**
 * Loads the host's key: the operator's own (32 bytes, or 64 hex digits) if its file exists, otherwise a generated one
 * in `dir`, created at the first start. Throws if the operator's file has no valid key. A damaged generated key is set
 * aside and replaced; its records are then unreadable, but the agent starts. The agent also starts if a new key can't
 * be written because the disk is full: the key is then written before the first record.
 */
export async function loadJournalKey(options: {
  readonly dir: string;
  /** The path of the operator's key. The file may be absent. */
  readonly file?: string | undefined;
  readonly noteDamage?: NoteDamage;
}): Promise<JournalKey> {
  const given = options.file === undefined ? undefined : await readKey(options.file);
  if (given !== undefined) return given;
  const path = `${options.dir}/${KEY_FILE}`;
  const found = await readKey(path).catch(async (error: Error) => {
    if (!(error instanceof NoKeyError)) throw error;
    const aside = await setAside(options.dir, KEY_FILE);
    const remedy = `a new key is made, and the coordinator sends the pods again; the file is kept as ${aside}`;
    options.noteDamage?.(path, "it can't be a key", remedy);
    return undefined;
  });
  if (found !== undefined) return found;
  const secret = randomBytes(KEY_BYTES);
  const key = new JournalKey(secret, path, async () => {
    await makePrivateDirectory(options.dir);
    const bytes = Buffer.from(`${secret.toString("hex")}\n`);
    await writeFilesDurably(options.dir, [{ name: KEY_FILE, bytes }]);
  });
  await key.store().catch((error: unknown) => {
    const remedy = "the agent keeps it in memory, and stores no pod before the key can be written";
    options.noteDamage?.(path, `a new key can't be written: ${messageOf(error)}`, remedy);
  });
  return key;
}

async function readKey(path: string): Promise<JournalKey | undefined> {
  const bytes = await readIfThere(path);
  if (bytes === undefined) return undefined;
  if (bytes.length === KEY_BYTES) return new JournalKey(bytes, path);
  const text = bytes.toString("latin1").trim();
  if (/^[0-9a-f]{64}$/i.test(text)) return new JournalKey(Buffer.from(text, "hex"), path);
  throw new NoKeyError(`${path} can't be a key: it must hold ${KEY_BYTES} bytes, or 64 hex digits`);
}

class NoKeyError extends Error {}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function boundTo(uid: string): Buffer {
  return Buffer.from(`forage journal pod\0${uid}`);
}
