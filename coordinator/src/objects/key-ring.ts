import { createCipheriv, createDecipheriv } from "node:crypto";
import type { Sealed } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../errors.ts";

/** 32 bytes with the name that records call it by. */
export interface SecretKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

const ALGORITHM = "aes-256-gcm";
export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts with the first key, decrypts with whichever a record names. `place`, where a record lies in the store, is
 * authenticated with it: a record that was moved elsewhere doesn't open.
 */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, SecretKey>;
  readonly #first: SecretKey;
  readonly #randomBytes: (count: number) => Uint8Array;

  constructor(keys: readonly SecretKey[], randomBytes: (count: number) => Uint8Array) {
    const [first] = keys;
    if (first === undefined) throw new TypeError("a key ring holds a key");
    this.#first = first;
    this.#keys = new Map(keys.map((key) => [key.id, key]));
    this.#randomBytes = randomBytes;
  }

  /** The key that new records are encrypted with. */
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

  /** Throws INTERNAL when the key is not in the file, or the record was changed or moved. Says nothing of what is in it. */
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
      // The library's error is left out on purpose: it has nothing to add.
      throw new CoordinatorError(
        "INTERNAL",
        `${place} was changed on disk or is encrypted with another key of the name ${keyId}`,
      );
    }
  }
}
