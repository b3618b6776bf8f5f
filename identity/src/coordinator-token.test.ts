import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { coordinatorTokenRefusal, mintCoordinatorToken, parseCoordinatorToken } from "./coordinator-token.ts";
import { MAX_JOIN_TTL_MS, mintJoinToken, parseJoinToken } from "./join-token.ts";

const pin = createHash("sha256").update("a root").digest("base64url");
const NOW_MS = Date.UTC(2030, 0, 1);
const mint = { pin, nowMs: NOW_MS, randomBytes };

describe("a coordinator's token", () => {
  it("contains the pin, the id and the secret, and its record only the hash", () => {
    const { token, record } = mintCoordinatorToken(mint);
    const parsed = parseCoordinatorToken(` ${token}\n`);
    assert.equal(parsed.pin, pin);
    assert.equal(parsed.id, record.id);
    assert.ok(!JSON.stringify(record).includes(parsed.secret));
    assert.equal(coordinatorTokenRefusal(record, parsed.secret, NOW_MS), undefined);
  });

  it("is not accepted as a node's join token, nor the reverse", () => {
    const malformed = { code: "TOKEN_MALFORMED" };
    assert.throws(() => parseJoinToken(mintCoordinatorToken(mint).token), malformed);
    assert.throws(() => parseCoordinatorToken(mintJoinToken(mint).token), malformed);
  });

  it("is refused with a wrong secret, after its expiry, and after its use", () => {
    const { token, record } = mintCoordinatorToken({ ...mint, ttlMs: 60_000 });
    const { secret } = parseCoordinatorToken(token);
    const used = { ...record, use: { name: "c2", atMs: NOW_MS } };
    assert.equal(coordinatorTokenRefusal(record, secret, NOW_MS + 60_000), "EXPIRED");
    assert.equal(coordinatorTokenRefusal(used, secret, NOW_MS), "USED");
    assert.equal(coordinatorTokenRefusal(used, `${secret}x`, NOW_MS + 60_000), "WRONG_SECRET");
  });

  it("lives at most half an hour", () => {
    assert.equal(
      mintCoordinatorToken({ ...mint, ttlMs: MAX_JOIN_TTL_MS }).record.expiresAtMs,
      NOW_MS + 1_800_000,
    );
    for (const ttlMs of [0, -1, Number.NaN, MAX_JOIN_TTL_MS + 1])
      assert.throws(() => mintCoordinatorToken({ ...mint, ttlMs }), { code: "INVALID_ARGUMENT" });
  });
});
