import type { Grant } from "./authorize.ts";
import { IdentityError } from "./error.ts";
import { hashSecret, isDigestText, matchesSecret, newId, newSecret, type RandomBytes } from "./secret.ts";

/** The coordinator's record of a bearer token. It contains a hash of the secret, never the secret. */
export interface ApiTokenRecord {
  /** 12 hex digits. Records are looked up by this id, and logs may contain it. */
  readonly id: string;
  /** A description for people: the owner and the purpose. */
  readonly description: string;
  readonly secretHash: string;
  readonly grants: readonly Grant[];
  readonly createdAtMs: number;
  /** If absent, the token is valid until its record is deleted. */
  readonly expiresAtMs?: number;
}

export interface MintApiToken {
  readonly description: string;
  readonly grants: readonly Grant[];
  readonly nowMs: number;
  readonly randomBytes: RandomBytes;
  readonly ttlMs?: number;
}

/** Makes a token `flt_<id>_<secret>`, to be shown once, and the record to store. */
export function mintApiToken(mint: MintApiToken): {
  readonly token: string;
  readonly record: ApiTokenRecord;
} {
  if (mint.grants.length === 0)
    throw new IdentityError("INVALID_ARGUMENT", "a token without a role allows nothing");
  if (mint.ttlMs !== undefined && !(mint.ttlMs > 0)) {
    throw new IdentityError("INVALID_ARGUMENT", "a token's life must be positive");
  }
  const id = newId(mint.randomBytes);
  const secret = newSecret(mint.randomBytes);
  const record = {
    id,
    description: mint.description,
    secretHash: hashSecret(secret),
    grants: mint.grants,
    createdAtMs: mint.nowMs,
    ...(mint.ttlMs !== undefined && { expiresAtMs: mint.nowMs + mint.ttlMs }),
  };
  return { token: `flt_${id}_${secret}`, record };
}

/**
 * Splits a token into its id and secret. Returns `undefined` for other text. Splits by length, because the secret may
 * contain `_`.
 */
export function parseApiToken(text: string): { readonly id: string; readonly secret: string } | undefined {
  const [, id, secret] = /^flt_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/.exec(text) ?? [];
  return id !== undefined && secret !== undefined && isDigestText(secret) ? { id, secret } : undefined;
}

/** Returns the bearer token of an `authorization` header; `undefined` if there is none or the scheme is another. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+)$/i.exec(header ?? "")?.[1];
}

export type ApiTokenVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "WRONG_SECRET" | "EXPIRED" };

/** Reports whether a presented secret matches the record of the token's id and the token has not expired. */
export function verifyApiToken(record: ApiTokenRecord, secret: string, nowMs: number): ApiTokenVerdict {
  if (!matchesSecret(record.secretHash, secret)) return { ok: false, reason: "WRONG_SECRET" };
  if (record.expiresAtMs !== undefined && nowMs >= record.expiresAtMs)
    return { ok: false, reason: "EXPIRED" };
  return { ok: true };
}
