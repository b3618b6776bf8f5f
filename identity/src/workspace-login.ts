import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** The path on a workspace's host that exchanges a login code for a cookie. */
export const LOGIN_PATH = "/.forage/login";

/** The lifetime of a login link. It is long enough for a browser to start and for two clocks that differ a little. */
export const LOGIN_VALIDITY_MS = 120_000;
/** A code that expires later than this is forged, or was made by a clock that is far ahead. */
const MAX_VALIDITY_MS = 600_000;
const NONCE_BYTES = 16;

export type LoginCodeResult =
  | { readonly type: "accepted"; readonly nonce: string; readonly expiresMs: number }
  | { readonly type: "malformed" }
  | { readonly type: "expired" }
  | { readonly type: "mismatch" };

/**
 * Makes a code for one login to one host of a workspace. Only the owner token can make codes, but the code doesn't
 * reveal the token, so it may appear in the history of a browser.
 */
export function makeLoginCode(options: {
  readonly ownerToken: string;
  readonly host: string;
  readonly nowMs: number;
}): string {
  const expiresMs = Math.floor(options.nowMs) + LOGIN_VALIDITY_MS;
  const nonce = randomBytes(NONCE_BYTES).toString("hex");
  return `${expiresMs}.${nonce}.${macOf(options, expiresMs, nonce)}`;
}

/** Verifies a code. The caller must accept each nonce only once. */
export function verifyLoginCode(
  code: string,
  options: { readonly ownerToken: string; readonly host: string; readonly nowMs: number },
): LoginCodeResult {
  const match = /^(\d{1,15})\.([0-9a-f]{32})\.([0-9a-f]{64})$/.exec(code);
  const [, expires = "", nonce = "", mac = ""] = match ?? [];
  if (match === null) return { type: "malformed" };
  const expiresMs = Number(expires);
  const expected = macOf(options, expiresMs, nonce);
  if (!timingSafeEqual(Buffer.from(mac), Buffer.from(expected))) return { type: "mismatch" };
  if (expiresMs <= options.nowMs || expiresMs > options.nowMs + MAX_VALIDITY_MS) return { type: "expired" };
  return { type: "accepted", nonce, expiresMs };
}

function macOf(
  { ownerToken, host }: { readonly ownerToken: string; readonly host: string },
  expiresMs: number,
  nonce: string,
): string {
  const text = `forage workspace login\n${host.toLowerCase()}\n${expiresMs}\n${nonce}`;
  return createHmac("sha256", ownerToken).update(text).digest("hex");
}
