import { IdentityError } from "./error.ts";
import type { NodeId } from "./node-id.ts";
import { type PinnedToken, parsePinnedToken, pinnedToken } from "./pinned-token.ts";
import { hashSecret, matchesSecret, newId, newSecret, type RandomBytes } from "./secret.ts";

const PREFIX = "FLT1";
const MINUTE_MS = 60_000;

/** Tokens appear in chats and provisioning logs, so they must expire soon. */
export const MAX_JOIN_TTL_MS = 30 * MINUTE_MS;
export const DEFAULT_JOIN_TTL_MS = 15 * MINUTE_MS;
/** The limit is enough for the hosts of a rack. The record contains each use and has to stay small. */
export const MAX_JOIN_USES = 100;
/**
 * The time in which the same key may repeat a join. A host whose join was not answered tries again within seconds; a
 * later request with its key must come from somebody else.
 */
export const JOIN_RETRY_MS = 10 * MINUTE_MS;

/** The coordinator's record of a join token. It contains a hash of the secret, never the secret. */
export interface JoinTokenRecord {
  /** 12 hex digits. Records are looked up by this id. */
  readonly id: string;
  readonly secretHash: string;
  readonly expiresAtMs: number;
  readonly maxUses: number;
  /** If set, only a node of this name can join with the token. */
  readonly nodeName?: NodeId;
  /** The labels that a joining node gets and can't remove itself. */
  readonly labels: Readonly<Record<string, string>>;
  /** The taints that a joining node gets. Absent in records of older coordinators. */
  readonly taints?: readonly JoinTaint[];
  readonly uses: readonly JoinUse[];
}

/** A taint that a node gets when it joins. */
export interface JoinTaint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

/** One join: the key and the name that joined. */
export interface JoinUse {
  /** `spkiPin` of the certified key. */
  readonly keyPin: string;
  readonly nodeName: NodeId;
  readonly atMs: number;
}

export interface MintJoinToken {
  /** Pin of the authority that signs the server's certificate. */
  readonly pin: string;
  readonly nowMs: number;
  readonly randomBytes: RandomBytes;
  readonly ttlMs?: number;
  readonly maxUses?: number;
  readonly nodeName?: NodeId;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly JoinTaint[];
}

export type JoinToken = PinnedToken;

/**
 * Makes a token of 105 characters and the record to store. @throws IdentityError INVALID_ARGUMENT if the pin, the
 * lifetime or the number of uses is out of bounds.
 */
export function mintJoinToken(mint: MintJoinToken): {
  readonly token: string;
  readonly record: JoinTokenRecord;
} {
  const { ttlMs = DEFAULT_JOIN_TTL_MS, maxUses = 1, nodeName } = mint;
  if (!(ttlMs > 0 && ttlMs <= MAX_JOIN_TTL_MS)) {
    throw new IdentityError("INVALID_ARGUMENT", "a join token lives at most 30 minutes");
  }
  if (!Number.isInteger(maxUses) || maxUses < 1 || maxUses > MAX_JOIN_USES) {
    throw new IdentityError("INVALID_ARGUMENT", `a join token has 1 to ${MAX_JOIN_USES} uses`);
  }
  if (nodeName !== undefined && maxUses !== 1) {
    throw new IdentityError("INVALID_ARGUMENT", "a token for one node has one use");
  }
  const id = newId(mint.randomBytes);
  const secret = newSecret(mint.randomBytes);
  const record = {
    id,
    secretHash: hashSecret(secret),
    expiresAtMs: mint.nowMs + ttlMs,
    maxUses,
    labels: { ...mint.labels },
    ...(mint.taints !== undefined && mint.taints.length > 0 && { taints: mint.taints }),
    uses: [],
    ...(nodeName !== undefined && { nodeName }),
  };
  return { token: pinnedToken(PREFIX, { pin: mint.pin, id, secret }), record };
}

/** Parses a token. @throws IdentityError TOKEN_MALFORMED. Its message names the fault and doesn't repeat the token. */
export function parseJoinToken(text: string): JoinToken {
  return parsePinnedToken(text, PREFIX, "a join token");
}

export interface JoinAttempt {
  readonly secret: string;
  readonly nodeName: NodeId;
  /** `spkiPin` of the key in the signing request. The caller has verified the request's signature. */
  readonly keyPin: string;
}

/**
 * `first`: issue a certificate, and store the record of `recordUse` in the same transaction as the node. `retry`: the
 * answer to a recent join may have been lost; issue the same key another certificate if its node has not connected yet.
 */
export type JoinVerdict =
  | { readonly ok: true; readonly type: "first" }
  | { readonly ok: true; readonly type: "retry"; readonly use: JoinUse }
  | { readonly ok: false; readonly reason: JoinRefusal };

/** `WRONG_SECRET` takes precedence over the others: a caller without the secret learns nothing about the token. */
export type JoinRefusal = "WRONG_SECRET" | "EXPIRED" | "WRONG_NAME" | "USED";

/**
 * Decides whether a join is accepted. Has no side effects: the caller looks the record up by the token's id, and stores
 * the result.
 */
export function verifyJoinToken(record: JoinTokenRecord, attempt: JoinAttempt, nowMs: number): JoinVerdict {
  if (!matchesSecret(record.secretHash, attempt.secret)) return { ok: false, reason: "WRONG_SECRET" };
  if (nowMs >= record.expiresAtMs) return { ok: false, reason: "EXPIRED" };
  if (record.nodeName !== undefined && record.nodeName !== attempt.nodeName)
    return { ok: false, reason: "WRONG_NAME" };
  const use = record.uses.find(({ keyPin }) => keyPin === attempt.keyPin);
  if (use !== undefined) {
    if (use.nodeName !== attempt.nodeName) return { ok: false, reason: "WRONG_NAME" };
    return nowMs - use.atMs < JOIN_RETRY_MS
      ? { ok: true, type: "retry", use }
      : { ok: false, reason: "USED" };
  }
  return record.uses.length < record.maxUses ? { ok: true, type: "first" } : { ok: false, reason: "USED" };
}

/**
 * Returns the record with one more use. @throws IdentityError INVALID_ARGUMENT if no use is left, because the caller
 * ignored the verdict or it is out of date.
 */
export function recordUse(record: JoinTokenRecord, use: JoinUse): JoinTokenRecord {
  if (record.uses.length >= record.maxUses)
    throw new IdentityError("INVALID_ARGUMENT", "the join token has no uses left");
  return { ...record, uses: [...record.uses, use] };
}
