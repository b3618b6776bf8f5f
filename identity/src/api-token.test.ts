import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { bearerToken, type MintApiToken, mintApiToken, parseApiToken, verifyApiToken } from "./api-token.ts";

const NOW_MS = Date.UTC(2030, 0, 1);
const GRANTS = [{ role: "viewer", namespaces: ["shop"] }] as const;

function minted(mint: Partial<MintApiToken> = {}) {
  const { token, record } = mintApiToken({
    description: "for tests",
    grants: GRANTS,
    nowMs: NOW_MS,
    randomBytes,
    ...mint,
  });
  const parsed = parseApiToken(token);
  assert.ok(parsed !== undefined);
  return { token, record, secret: parsed.secret, id: parsed.id };
}

describe("an API token", () => {
  it("matches the record that it was minted with", () => {
    const { token, record, secret, id } = minted();
    assert.match(token, /^flt_[0-9a-f]{12}_[\w-]{43}$/);
    assert.equal(id, record.id);
    assert.deepEqual(verifyApiToken(record, secret, NOW_MS), { ok: true });
    assert.ok(!JSON.stringify(record).includes(secret));
  });

  it("may have underscores in its secret", () => {
    const { record, secret, token } = minted({ randomBytes: (count) => Buffer.alloc(count, 0xff) });
    assert.match(token, /__/);
    assert.equal(verifyApiToken(record, secret, NOW_MS).ok, true);
  });

  it("is refused with the secret of another token", () => {
    const { record } = minted();
    assert.deepEqual(verifyApiToken(record, minted().secret, NOW_MS), { ok: false, reason: "WRONG_SECRET" });
  });

  it("expires at its expiry, and never expires without one", () => {
    const short = minted({ ttlMs: 1_000 });
    assert.equal(verifyApiToken(short.record, short.secret, NOW_MS + 999).ok, true);
    assert.deepEqual(verifyApiToken(short.record, short.secret, NOW_MS + 1_000), {
      ok: false,
      reason: "EXPIRED",
    });
    const endless = minted();
    assert.equal(verifyApiToken(endless.record, endless.secret, NOW_MS * 2).ok, true);
  });

  it("needs a role and a positive lifetime", () => {
    assert.throws(() => minted({ grants: [] }), { code: "INVALID_ARGUMENT" });
    assert.throws(() => minted({ ttlMs: 0 }), { code: "INVALID_ARGUMENT" });
  });

  it("is not parsed from other text", () => {
    const { token } = minted();
    for (const text of [
      "",
      "flt_",
      `${token}x`,
      token.toUpperCase(),
      token.slice(0, -1),
      `x${token}`,
      `${token}\n`,
    ]) {
      assert.equal(parseApiToken(text), undefined, JSON.stringify(text));
    }
  });

  it("is read from an authorization header", () => {
    assert.equal(bearerToken("Bearer abc"), "abc");
    assert.equal(bearerToken("bearer  abc"), "abc");
    for (const header of [undefined, "", "Bearer", "Bearer ", "Basic abc", "Bearer a b"]) {
      assert.equal(bearerToken(header), undefined);
    }
  });
});
