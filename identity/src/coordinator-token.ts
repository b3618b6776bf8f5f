import { IdentityError } from "./error.ts";
import { DEFAULT_JOIN_TTL_MS, MAX_JOIN_TTL_MS } from "./join-token.ts";
import { type PinnedToken, parsePinnedToken, pinnedToken } from "./pinned-token.ts";
import { hashSecret, matchesSecret, newId, newSecret, type RandomBytes } from "./secret.ts";

/**
 * Differs from the prefix of nodes' join tokens, because a coordinator's token gives access to the keys of the cluster.
 */
const PREFIX = "FCT1";

/**
 * The coordinator's record of a token for one further coordinator. It contains a hash of the secret, never the secret.
 */
export interface CoordinatorTokenRecord {
  readonly id: string;
  readonly secretHash: string;
  readonly expiresAtMs: number;
  /** Absent until the token is used. A token can be used once. */
  readonly use?: { readonly name: string; readonly atMs: number };
}

/**
 * Makes a token and the record to store. @throws IdentityError INVALID_ARGUMENT if the pin or the lifetime is out of
 * bounds.
 */
export function mintCoordinatorToken(mint: {
  /** Pin of the authority that signs the server's certificate. */
  readonly pin: string;
  readonly nowMs: number;
  readonly randomBytes: RandomBytes;
  readonly ttlMs?: number;
}): { readonly token: string; readonly record: CoordinatorTokenRecord } {
  const { pin, nowMs, randomBytes, ttlMs = DEFAULT_JOIN_TTL_MS } = mint;
  if (!(ttlMs > 0 && ttlMs <= MAX_JOIN_TTL_MS))
    throw new IdentityError("INVALID_ARGUMENT", "a coordinator's token lives at most 30 minutes");
  const id = newId(randomBytes);
  const secret = newSecret(randomBytes);
  const record = { id, secretHash: hashSecret(secret), expiresAtMs: nowMs + ttlMs };
  return { token: pinnedToken(PREFIX, { pin, id, secret }), record };
}

/** Parses a token. @throws IdentityError TOKEN_MALFORMED. Its message names the fault and doesn't repeat the token. */
export function parseCoordinatorToken(text: string): PinnedToken {
  return parsePinnedToken(text, PREFIX, "a coordinator's token");
}

/** `WRONG_SECRET` takes precedence over the others: a caller without the secret learns nothing about the token. */
export type CoordinatorTokenRefusal = "WRONG_SECRET" | "EXPIRED" | "USED";

/** Returns the reason why the token is refused; `undefined` if it may be used. */
export function coordinatorTokenRefusal(
  record: CoordinatorTokenRecord,
  secret: string,
  nowMs: number,
): CoordinatorTokenRefusal | undefined {
  if (!matchesSecret(record.secretHash, secret)) return "WRONG_SECRET";
  if (nowMs >= record.expiresAtMs) return "EXPIRED";
  return record.use === undefined ? undefined : "USED";
}
