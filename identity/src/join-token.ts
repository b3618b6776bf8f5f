import { IdentityError } from "./error.ts";
import type { NodeId } from "./node-id.ts";
import { type PinnedToken, parsePinnedToken, pinnedToken } from "./pinned-token.ts";
import { hashSecret, matchesSecret, newId, newSecret, type RandomBytes } from "./secret.ts";

const PREFIX = "FLT1";
const MINUTE_MS = 60_000;

/** A token travels through people's hands, chats and provisioning logs, so it must soon be worth nothing. */
export const MAX_JOIN_TTL_MS = 30 * MINUTE_MS;
export const DEFAULT_JOIN_TTL_MS = 15 * MINUTE_MS;
/** One rack. Each use is kept in the record, which has to stay small. */
export const MAX_JOIN_USES = 100;
/** A host whose join was not answered tries again within seconds. Later requests of the same key are not its own. */
export const JOIN_RETRY_MS = 10 * MINUTE_MS;

/** The coordinator's record of a join token. It holds the secret's hash only. */
export interface JoinTokenRecord {
  /** 12 hex digits; the key to find the record by. */
  readonly id: string;
  readonly secretHash: string;
  readonly expiresAtMs: number;
  readonly maxUses: number;
  /** If set, only a node of this name may join with it. */
  readonly nodeName?: NodeId;
  /** Labels that the node gets and can't take off itself. */
  readonly labels: Readonly<Record<string, string>>;
  /** Taints that the node gets. Absent in records of older coordinators. */
  readonly taints?: readonly JoinTaint[];
  readonly uses: readonly JoinUse[];
}

/** A taint that a node gets when it joins. */
export interface JoinTaint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

/** One join: which key joined under which name. */
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

/** Makes a token, 105 characters, and the record to store. INVALID_ARGUMENT when pin, life or uses are out of bounds. */
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

/** Takes a token apart. TOKEN_MALFORMED says what is wrong without repeating the token. */
export function parseJoinToken(text: string): JoinToken {
  return parsePinnedToken(text, PREFIX, "a join token");
}

export interface JoinAttempt {
  readonly secret: string;
  readonly nodeName: NodeId;
  /** `spkiPin` of the key in the signing request, whose signature was checked. */
  readonly keyPin: string;
}

/**
 * `first`: issue a certificate and store `recordUse`'s record in the same transaction as the node.
 * `retry`: the answer to a recent join may have been lost; the same key gets a certificate again if its node has not connected.
 */
export type JoinVerdict =
  | { readonly ok: true; readonly kind: "first" }
  | { readonly ok: true; readonly kind: "retry"; readonly use: JoinUse }
  | { readonly ok: false; readonly reason: JoinRefusal };

/** `WRONG_SECRET` takes precedence over all others: a caller without the secret learns nothing about the token. */
export type JoinRefusal = "WRONG_SECRET" | "EXPIRED" | "WRONG_NAME" | "USED";

/** Judges a join. Pure: the caller finds the record by the token's id and stores what follows. */
export function verifyJoinToken(record: JoinTokenRecord, attempt: JoinAttempt, nowMs: number): JoinVerdict {
  if (!matchesSecret(record.secretHash, attempt.secret)) return { ok: false, reason: "WRONG_SECRET" };
  if (nowMs >= record.expiresAtMs) return { ok: false, reason: "EXPIRED" };
  if (record.nodeName !== undefined && record.nodeName !== attempt.nodeName)
    return { ok: false, reason: "WRONG_NAME" };
  const use = record.uses.find(({ keyPin }) => keyPin === attempt.keyPin);
  if (use !== undefined) {
    if (use.nodeName !== attempt.nodeName) return { ok: false, reason: "WRONG_NAME" };
    return nowMs - use.atMs < JOIN_RETRY_MS
      ? { ok: true, kind: "retry", use }
      : { ok: false, reason: "USED" };
  }
  return record.uses.length < record.maxUses ? { ok: true, kind: "first" } : { ok: false, reason: "USED" };
}

/** The record after a first use. INVALID_ARGUMENT when there is no use left: the verdict was not asked, or is old. */
export function recordUse(record: JoinTokenRecord, use: JoinUse): JoinTokenRecord {
  if (record.uses.length >= record.maxUses)
    throw new IdentityError("INVALID_ARGUMENT", "the join token is used up");
  return { ...record, uses: [...record.uses, use] };
}
