import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyCertificateState } from "./certificate-state.ts";
import { IssueError } from "./issue-error.ts";
import { failed, pauseAfter, succeeded } from "./outcome.ts";

const CONTEXT = {
  nowMs: 10_000,
  random: 0,
  hostnameBackOff: { baseMs: 100, capMs: 1_000 },
  issuerBackOff: { baseMs: 50, capMs: 400 },
};
const before = emptyCertificateState("a", "acme");
const hostnameError = new IssueError("dns: no such name", { blame: "hostname" });
const issuerError = new IssueError("can't be reached", { blame: "issuer" });

test("renews a certificate at two thirds of its lifetime, plus or minus a tenth of that", () => {
  const certificate = { chainPem: "c", keyPem: "k", notBeforeMs: 0, notAfterMs: 9_000_000 };
  const again = { ...before, failures: 4, error: "x", retryAtMs: 5, renewalRequestedAtMs: 1 };
  const after = succeeded(again, "acme", certificate, { nowMs: 0, random: 0.5 });
  assert.deepEqual(after, { ...before, certificate, renewAtMs: 6_000_000 });
  assert.equal(succeeded(before, "acme", certificate, { nowMs: 0, random: 0 }).renewAtMs, 5_400_000);
  assert.equal(succeeded(before, "acme", certificate, { nowMs: 0, random: 1 }).renewAtMs, 6_600_000);
});

test("requests a certificate that is already due on arrival again after at most a day", () => {
  const dayMs = 24 * 3_600_000;
  const certificate = { chainPem: "c", keyPem: "k", notBeforeMs: 0, notAfterMs: 90 * dayMs };
  const nowMs = 85 * dayMs;
  assert.equal(succeeded(before, "acme", certificate, { nowMs, random: 0.5 }).renewAtMs, 86 * dayMs);
  const short = { ...certificate, notAfterMs: 15_000 };
  assert.equal(succeeded(before, "acme", short, { nowMs: 14_000, random: 0.5 }).renewAtMs, 19_000);
});

test("increases the delay with each failure of a hostname", () => {
  const once = failed(before, hostnameError, CONTEXT);
  assert.equal(once.retryAtMs, 10_100);
  assert.equal(once.error, "dns: no such name");
  const twice = failed(once, hostnameError, CONTEXT);
  assert.deepEqual([twice.failures, twice.retryAtMs, twice.retryAtRequested], [2, 10_200, false]);
});

test("keeps the certificate after a failed renewal", () => {
  const certificate = { chainPem: "c", keyPem: "k", notBeforeMs: 0, notAfterMs: 900 };
  assert.equal(failed({ ...before, certificate }, hostnameError, CONTEXT).certificate, certificate);
});

test("does not count an unreachable issuer against the hostname", () => {
  assert.equal(failed(before, issuerError, CONTEXT), before);
  assert.deepEqual(pauseAfter(undefined, issuerError, CONTEXT), {
    failures: 1,
    error: "can't be reached",
    untilMs: 10_050,
    isRequested: false,
  });
});

test("counts attempts that were in progress when the issuer became unreachable once", () => {
  const pause = pauseAfter(undefined, issuerError, CONTEXT);
  assert.equal(pauseAfter(pause, issuerError, CONTEXT), pause);
  const later = pauseAfter(pause, issuerError, { ...CONTEXT, nowMs: 10_050 });
  assert.deepEqual([later?.failures, later?.untilMs], [2, 10_150]);
});

test("does not pause the issuer when it refuses a hostname", () => {
  const pause = pauseAfter(undefined, issuerError, CONTEXT);
  assert.equal(pauseAfter(pause, hostnameError, CONTEXT), undefined);
});

test("delays the hostname as requested after too many requests, and all others for at most ten minutes", () => {
  const error = new IssueError("rateLimited", { blame: "rate", retryAfterMs: 3_600_000 });
  const after = failed(before, error, CONTEXT);
  assert.deepEqual([after.retryAtMs, after.retryAtRequested], [3_610_000, true]);
  const pause = pauseAfter(undefined, error, CONTEXT);
  assert.deepEqual([pause?.untilMs, pause?.isRequested], [610_000, true]);
});

test("limits the delay that an authority can request", () => {
  const error = new IssueError("busy", { blame: "rate", retryAfterMs: 1e15 });
  assert.equal(failed(before, error, CONTEXT).retryAtMs, 10_000 + 7 * 24 * 3_600_000);
});

test("limits messages to one line of limited length", () => {
  const { message } = new IssueError(`a\n\tb\u001b[31m\u2028${"x".repeat(2_000)}`, { blame: "hostname" });
  assert.match(message, /^a b \[31m x+…$/);
  assert.equal(message.length, 500);
});
