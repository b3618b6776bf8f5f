import { createHash, timingSafeEqual } from "node:crypto";

/** Compares in a time that depends on neither text. */
export function isSameToken(given: string, expected: string): boolean {
  return expected !== "" && timingSafeEqual(digestOf(given), digestOf(expected));
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
