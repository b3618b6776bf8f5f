import type { Grant } from "./authorize.ts";
import { IdentityError } from "./error.ts";
import { hashSecret, isDigestText, matchesSecret, newId, newSecret, type RandomBytes } from "./secret.ts";

/** The coordinator's record of a bearer token. It holds the secret's hash only. */
export interface ApiTokenRecord {
  /** 12 hex digits; the key to find the record by, and what logs may name. */
  readonly id: string;
  /** A description for people: the owner and the purpose. */
  readonly description: string;
  readonly secretHash: string;
  readonly grants: readonly Grant[];
  readonly createdAtMs: number;
  /** Absent: until it is revoked by deleting the record. */
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

/** Takes a token apart; `undefined` when it isn't one. The secret may hold `_`, so lengths decide. */
export function parseApiToken(text: string): { readonly id: string; readonly secret: string } | undefined {
  const [, id, secret] = /^flt_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/.exec(text) ?? [];
  return id !== undefined && secret !== undefined && isDigestText(secret) ? { id, secret } : undefined;
}

/** The token of an `authorization` header; `undefined` when there is none or it is of another kind. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+)$/i.exec(header ?? "")?.[1];
}

export type ApiTokenVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "WRONG_SECRET" | "EXPIRED" };

/** Judges a presented secret against the record found by the token's id. */
export function verifyApiToken(record: ApiTokenRecord, secret: string, nowMs: number): ApiTokenVerdict {
  if (!matchesSecret(record.secretHash, secret)) return { ok: false, reason: "WRONG_SECRET" };
  if (record.expiresAtMs !== undefined && nowMs >= record.expiresAtMs)
    return { ok: false, reason: "EXPIRED" };
  return { ok: true };
}
