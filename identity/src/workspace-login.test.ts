import assert from "node:assert/strict";
import { test } from "node:test";
import { LOGIN_VALIDITY_MS, makeLoginCode, verifyLoginCode } from "./workspace-login.ts";

const made = { ownerToken: "t".repeat(32), host: "w1.ws.example.org", nowMs: 1_000_000 };
const code = makeLoginCode(made);

test("accepts a code for its host until it expires", () => {
  assert.equal(verifyLoginCode(code, made).type, "accepted");
  assert.equal(verifyLoginCode(code, { ...made, host: "W1.ws.example.org" }).type, "accepted");
  const lateMs = made.nowMs + LOGIN_VALIDITY_MS;
  assert.equal(verifyLoginCode(code, { ...made, nowMs: lateMs - 1 }).type, "accepted");
  assert.equal(verifyLoginCode(code, { ...made, nowMs: lateMs }).type, "expired");
});

test("rejects codes of other hosts and tokens, altered codes, and codes that are valid for too long", () => {
  assert.equal(verifyLoginCode(code, { ...made, host: "w2.ws.example.org" }).type, "mismatch");
  assert.equal(verifyLoginCode(code, { ...made, ownerToken: "u".repeat(32) }).type, "mismatch");
  assert.equal(verifyLoginCode(code.replace(/^\d+/, "1999999"), made).type, "mismatch");
  assert.equal(verifyLoginCode(code, { ...made, nowMs: made.nowMs - 3_600_000 }).type, "expired");
  for (const text of ["", "1.2.3", `${code}0`, `x${code}`])
    assert.equal(verifyLoginCode(text, made).type, "malformed", text);
});

test("makes codes that don't contain the owner token", () => {
  assert.ok(!code.includes(made.ownerToken));
});
