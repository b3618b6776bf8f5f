import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** The path on a workspace's host at which a login code becomes a cookie. */
export const LOGIN_PATH = "/.forage/login";

/** The lifetime of a login link: enough for a browser to start and for two clocks that differ a little. */
export const LOGIN_VALIDITY_MS = 120_000;
/** A code that ends later was not made by us, or by a clock that is far ahead. */
const MAX_VALIDITY_MS = 600_000;
const NONCE_BYTES = 16;

export type LoginCodeResult =
  | { readonly type: "accepted"; readonly nonce: string; readonly expiresMs: number }
  | { readonly type: "malformed" }
  | { readonly type: "expired" }
  | { readonly type: "mismatch" };

/**
 * Makes a code for one login to one host of a workspace. It takes the owner token to make one, and the code doesn't reveal
 * the token: it may appear in the history of a browser.
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

/** Verifies a code. The caller accepts each nonce once. */
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
