import { createHash, timingSafeEqual } from "node:crypto";

/** 256 bits can't be guessed, so a plain hash may be stored, without a slow password function. */
export const SECRET_BYTES = 32;
/** 48 bits: an id only has to be rare enough not to collide; the store still checks. */
const ID_BYTES = 6;

export type RandomBytes = (count: number) => Uint8Array;

export function newSecret(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(SECRET_BYTES)).toString("base64url");
}

export function newId(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(ID_BYTES)).toString("hex");
}

/** Returns the stored form of a secret: base64url of its SHA-256. */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}

/** Compares in constant time. A hash of the wrong length, as of an empty record, never matches. */
export function matchesSecret(secretHash: string, presented: string): boolean {
  const stored = Buffer.from(secretHash, "base64url");
  const given = Buffer.from(hashSecret(presented), "base64url");
  return stored.length === given.length && timingSafeEqual(stored, given);
}

/** True for the one way base64url writes 32 bytes: 43 characters, unused bits zero. */
export function isDigestText(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text) && Buffer.from(text, "base64url").toString("base64url") === text;
}
