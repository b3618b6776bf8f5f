import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import {
  JOIN_RETRY_MS,
  type JoinAttempt,
  type JoinTokenRecord,
  MAX_JOIN_TTL_MS,
  type MintJoinToken,
  mintJoinToken,
  parseJoinToken,
  recordUse,
  verifyJoinToken,
} from "./join-token.ts";
import { nodeId } from "./node-id.ts";

const pin = createHash("sha256").update("a root").digest("base64url");
const NOW_MS = Date.UTC(2030, 0, 1);
const n1 = nodeId("n1");

function minted(mint: Partial<MintJoinToken> = {}): {
  record: JoinTokenRecord;
  attempt: JoinAttempt;
  token: string;
} {
  const { token, record } = mintJoinToken({ pin, nowMs: NOW_MS, randomBytes, ...mint });
  return { token, record, attempt: { secret: parseJoinToken(token).secret, nodeName: n1, keyPin: "key-1" } };
}

describe("a join token", () => {
  it("contains pin, id and secret in 105 characters", () => {
    const { token, record } = minted();
    assert.equal(token.length, 105);
    assert.match(token, /^FLT1\.[\w-]{43}\.[0-9a-f]{12}\.[\w-]{43}$/);
    const parsed = parseJoinToken(`  ${token}\n`);
    assert.equal(parsed.pin, pin);
    assert.equal(parsed.id, record.id);
  });

  it("has no secret in its record", () => {
    const { record, attempt } = minted();
    assert.ok(!JSON.stringify(record).includes(attempt.secret));
    assert.equal(record.secretHash, createHash("sha256").update(attempt.secret).digest("base64url"));
  });

  it("differs each time", () => {
    assert.notEqual(minted().token, minted().token);
  });

  it("lives at most half an hour", () => {
    assert.equal(minted({ ttlMs: MAX_JOIN_TTL_MS }).record.expiresAtMs, NOW_MS + 30 * 60_000);
    for (const ttlMs of [MAX_JOIN_TTL_MS + 1, 0, -1, Number.NaN]) {
      assert.throws(() => minted({ ttlMs }), { code: "INVALID_ARGUMENT" });
    }
  });

  it("has a limited number of uses, and a single use if it is bound to a name", () => {
    for (const maxUses of [0, 101, 1.5])
      assert.throws(() => minted({ maxUses }), { code: "INVALID_ARGUMENT" });
    assert.throws(() => minted({ maxUses: 2, nodeName: n1 }), { code: "INVALID_ARGUMENT" });
  });

  it("is rejected if it is damaged, with the fault but not the token in the message", () => {
    const { token } = minted();
    const [, p = "", id = "", secret = ""] = token.split(".");
    const damaged: [string, RegExp][] = [
      ["", /must start/],
      ["flt_abc", /must start/],
      [`FLT2.${p}.${id}.${secret}`, /must start/],
      [`FLT1.${p}.${id}`, /4 parts/],
      [`${token}.x`, /4 parts/],
      [`FLT1.${p.slice(1)}.${id}.${secret}`, /hash/],
      [`FLT1.${p}.${id.toUpperCase()}x.${secret}`, /id/],
      [token.slice(0, -1), /secret/],
      // The last of 43 characters has two unused bits. A token with these bits set is a different text for the same
      // bytes.
      [`FLT1.${p}.${id}.${"A".repeat(42)}B`, /secret/],
    ];
    for (const [text, message] of damaged) {
      assert.throws(() => parseJoinToken(text), { code: "TOKEN_MALFORMED", message });
      assert.throws(
        () => parseJoinToken(text),
        (error: Error) => !error.message.includes(secret),
      );
    }
  });
});

describe("verifyJoinToken", () => {
  it("admits a node once", () => {
    const { record, attempt } = minted();
    assert.deepEqual(verifyJoinToken(record, attempt, NOW_MS), { ok: true, type: "first" });
  });

  it("admits the same key again without a further use, and refuses another key", () => {
    const { record, attempt } = minted();
    const use = { keyPin: "key-1", nodeName: n1, atMs: NOW_MS };
    const used = recordUse(record, use);
    assert.deepEqual(verifyJoinToken(used, attempt, NOW_MS + 1), { ok: true, type: "retry", use });
    const replay = { ...attempt, keyPin: "key-2" };
    assert.deepEqual(verifyJoinToken(used, replay, NOW_MS + 1), { ok: false, reason: "USED" });
    assert.throws(() => recordUse(used, { ...use, keyPin: "key-2" }), { code: "INVALID_ARGUMENT" });
  });

  it("refuses the same key after ten minutes", () => {
    const { record, attempt } = minted();
    const use = { keyPin: "key-1", nodeName: n1, atMs: NOW_MS };
    const used = recordUse(record, use);
    const lastMs = NOW_MS + JOIN_RETRY_MS;
    assert.deepEqual(verifyJoinToken(used, attempt, lastMs - 1), { ok: true, type: "retry", use });
    assert.deepEqual(verifyJoinToken(used, attempt, lastMs), { ok: false, reason: "USED" });
  });

  it("refuses the same key under a second name", () => {
    const { record, attempt } = minted({ maxUses: 2 });
    const used = recordUse(record, { keyPin: "key-1", nodeName: n1, atMs: NOW_MS });
    const renamed = { ...attempt, nodeName: nodeId("n2") };
    assert.deepEqual(verifyJoinToken(used, renamed, NOW_MS), { ok: false, reason: "WRONG_NAME" });
  });

  it("counts the uses of a token for several nodes", () => {
    const { record, attempt } = minted({ maxUses: 2 });
    const first = recordUse(record, { keyPin: "a", nodeName: nodeId("a"), atMs: NOW_MS });
    assert.equal(verifyJoinToken(first, attempt, NOW_MS).ok, true);
    const second = recordUse(first, { keyPin: "b", nodeName: nodeId("b"), atMs: NOW_MS });
    assert.deepEqual(verifyJoinToken(second, attempt, NOW_MS), { ok: false, reason: "USED" });
  });

  it("refuses an expired token, also for a retry", () => {
    const { record, attempt } = minted({ ttlMs: 1_000 });
    assert.equal(verifyJoinToken(record, attempt, NOW_MS + 999).ok, true);
    assert.deepEqual(verifyJoinToken(record, attempt, NOW_MS + 1_000), { ok: false, reason: "EXPIRED" });
    const used = recordUse(record, { keyPin: "key-1", nodeName: n1, atMs: NOW_MS });
    assert.deepEqual(verifyJoinToken(used, attempt, NOW_MS + 1_000), { ok: false, reason: "EXPIRED" });
  });

  it("refuses a name other than the one that the token is bound to", () => {
    const { record, attempt } = minted({ nodeName: n1 });
    assert.equal(verifyJoinToken(record, attempt, NOW_MS).ok, true);
    const other = { ...attempt, nodeName: nodeId("n2") };
    assert.deepEqual(verifyJoinToken(record, other, NOW_MS), { ok: false, reason: "WRONG_NAME" });
  });

  it("reveals nothing about a token to a caller without its secret", () => {
    const { record, attempt } = minted({ nodeName: n1, ttlMs: 1 });
    const guess = { ...attempt, secret: parseJoinToken(minted().token).secret, nodeName: nodeId("n2") };
    assert.deepEqual(verifyJoinToken(record, guess, NOW_MS + 1), { ok: false, reason: "WRONG_SECRET" });
  });

  it("never matches an empty record or an empty secret", () => {
    const { record, attempt } = minted();
    assert.equal(verifyJoinToken({ ...record, secretHash: "" }, attempt, NOW_MS).ok, false);
    assert.equal(verifyJoinToken(record, { ...attempt, secret: "" }, NOW_MS).ok, false);
  });
});
