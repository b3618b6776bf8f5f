import { createHash, timingSafeEqual } from "node:crypto";

/** 256 bits can't be guessed, so a plain hash can be stored instead of one by a slow password function. */
export const SECRET_BYTES = 32;
/** 48 bits make collisions rare enough; the store still checks for them. */
const ID_BYTES = 6;

export type RandomBytes = (count: number) => Uint8Array;

export function newSecret(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(SECRET_BYTES)).toString("base64url");
}

export function newId(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(ID_BYTES)).toString("hex");
}

/** Returns the stored form of a secret: its SHA-256 in base64url. */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}

/**
 * Compares a secret with a hash in constant time. A hash of the wrong length, such as that of an empty record, never
 * matches.
 */
export function matchesSecret(secretHash: string, presented: string): boolean {
  const stored = Buffer.from(secretHash, "base64url");
  const given = Buffer.from(hashSecret(presented), "base64url");
  return stored.length === given.length && timingSafeEqual(stored, given);
}

/** Reports whether the text is the canonical base64url of 32 bytes: 43 characters, unused bits zero. */
export function isDigestText(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text) && Buffer.from(text, "base64url").toString("base64url") === text;
}
