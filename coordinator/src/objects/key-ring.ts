import { createCipheriv, createDecipheriv } from "node:crypto";
import type { Sealed } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../errors.ts";

/** A key of 32 bytes, with the id that records use for it. */
export interface SecretKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

const ALGORITHM = "aes-256-gcm";
export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts with the first key, and decrypts with the key that a record names. The record's key in the store, `place`, is
 * authenticated as well, so that a record that was moved elsewhere can't be decrypted.
 */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, SecretKey>;
  readonly #first: SecretKey;
  readonly #randomBytes: (count: number) => Uint8Array;

  constructor(keys: readonly SecretKey[], randomBytes: (count: number) => Uint8Array) {
    const [first] = keys;
    if (first === undefined) throw new TypeError("a key ring must have a key");
    this.#first = first;
    this.#keys = new Map(keys.map((key) => [key.id, key]));
    this.#randomBytes = randomBytes;
  }

  /** The id of the key that encrypts new records. */
  get keyId(): string {
    return this.#first.id;
  }

  seal(plain: Uint8Array, place: string): Sealed {
    const nonce = this.#randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#first.bytes, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(place));
    const ciphertext = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    return { keyId: this.#first.id, nonce: Buffer.from(nonce), ciphertext };
  }

  /**
   * Decrypts a record. @throws CoordinatorError INTERNAL if the key is missing in the file, or the record was changed or
   * moved. The message reveals nothing of the content.
   */
  open({ keyId, nonce, ciphertext }: Sealed, place: string): Buffer {
    const key = this.#keys.get(keyId);
    if (key === undefined)
      throw new CoordinatorError(
        "INTERNAL",
        `${place} is encrypted with key ${keyId}: put it back into the secret key file`,
      );
    try {
      const decipher = createDecipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(place));
      decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
      return Buffer.concat([decipher.update(ciphertext.subarray(0, -TAG_BYTES)), decipher.final()]);
    } catch {
      // The library's error is left out, because it adds no information.
      throw new CoordinatorError(
        "INTERNAL",
        `${place} was changed on disk, or is encrypted with another key with the id ${keyId}`,
      );
    }
  }
}
