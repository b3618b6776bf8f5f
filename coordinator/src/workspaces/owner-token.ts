import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Characters that cookies, headers and URLs hold unescaped. There are 64 of them, so that a random
 * byte selects each with equal probability.
 */
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TOKEN_LENGTH = 32;

/** Returns a new owner token of 192 random bits. */
export function ownerToken(randomBytes: (count: number) => Uint8Array): string {
  return Array.from(randomBytes(TOKEN_LENGTH), (byte) => ALPHABET[byte & 63]).join("");
}

/** Compares two tokens in constant time. */
export function isSameToken(given: string, expected: string): boolean {
  return expected !== "" && timingSafeEqual(digestOf(given), digestOf(expected));
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
