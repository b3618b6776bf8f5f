import assert from "node:assert/strict";
import { test } from "node:test";
import { type CertificateInputs, certificateFor } from "./certificate-for.ts";
import { type CertificateState, emptyCertificateState } from "./certificate-state.ts";
import { certificateView } from "./view.ts";

const nowMs = Date.parse("2026-03-01T00:00:00Z");
const HOUR_MS = 3_600_000;

const held: CertificateState = {
  ...emptyCertificateState("a.test", "acme"),
  certificate: { chainPem: "c", keyPem: "k", notBeforeMs: 0, notAfterMs: nowMs + HOUR_MS },
  renewAtMs: nowMs + HOUR_MS / 2,
};
const failing = { failures: 2, error: "caa: forbidden", failedAtMs: nowMs, retryAtMs: nowMs + HOUR_MS };
const ended = { ...held, certificate: { chainPem: "c", keyPem: "k", notBeforeMs: 0, notAfterMs: nowMs } };
const pause = { failures: 1, error: "out of reach", untilMs: nowMs + 60_000, isRequested: false };

interface Case {
  readonly name: string;
  readonly known: Partial<CertificateInputs>;
  /** The reason and message of a pending certificate, or the warning about an issued one. */
  readonly answer: readonly [string, RegExp] | "issued" | RegExp;
  readonly state: string;
}

const cases: readonly Case[] = [
  {
    name: "not requested yet",
    known: {},
    answer: ["Issuing", /^a certificate is being requested from ACME$/],
    state: "issuing",
  },
  {
    name: "running",
    known: { running: true },
    answer: ["Issuing", /being requested from/],
    state: "issuing",
  },
  {
    name: "failed",
    known: { state: { ...emptyCertificateState("a.test", "acme"), ...failing } },
    answer: ["IssueFailed", /^caa: forbidden \(tried again at 2026-03-01T01:00:00Z\)$/],
    state: "failed",
  },
  {
    name: "failed, and running again",
    known: { state: { ...emptyCertificateState("a.test", "acme"), ...failing }, running: true },
    answer: ["Issuing", /requested from ACME; caa: forbidden/],
    state: "issuing",
  },
  {
    name: "the issuer is paused",
    known: { pause },
    answer: ["IssuerUnavailable", /^out of reach \(tried again at 2026-03-01T00:01:00Z\)$/],
    state: "failed",
  },
  {
    name: "the pause is over",
    known: { pause: { ...pause, untilMs: nowMs } },
    answer: ["Issuing", /requested/],
    state: "issuing",
  },
  {
    name: "refused",
    known: { refusal: "no wildcards" },
    answer: ["Refused", /^no wildcards$/],
    state: "refused",
  },
  { name: "present", known: { state: held }, answer: "issued", state: "ready" },
  {
    name: "present while the next one is requested",
    known: { state: held, running: true },
    answer: "issued",
    state: "ready",
  },
  {
    name: "present and not due while the issuer is unreachable",
    known: { state: held, pause },
    answer: "issued",
    state: "ready",
  },
  {
    name: "due while the issuer is unreachable",
    known: { state: { ...held, renewAtMs: nowMs }, pause },
    answer: /^it expires at 2026-03-01T01:00:00Z and can't be renewed: out of reach/,
    state: "ready",
  },
  {
    name: "present with a failed renewal",
    known: { state: { ...held, ...failing } },
    answer: /^it expires at 2026-03-01T01:00:00Z and can't be renewed: caa: forbidden/,
    state: "ready",
  },
  {
    name: "present from a former issuer, while the present one refuses the hostname",
    known: { state: held, refusal: "no wildcards" },
    answer: /can't be renewed: no wildcards/,
    state: "ready",
  },
  {
    name: "expired",
    known: { state: { ...ended, ...failing } },
    answer: /^it expired at 2026-03-01T00:00:00Z and can't be renewed: caa/,
    state: "expired",
  },
  {
    name: "expired between two evaluations",
    known: { state: ended },
    answer: /^it expired at 2026-03-01T00:00:00Z and is being renewed$/,
    state: "expired",
  },
];

for (const { name, known, answer, state } of cases)
  test(name, () => {
    const all: CertificateInputs = {
      ...{ state: undefined, refusal: undefined, running: false, pause: undefined },
      ...{ issuerName: "ACME", nowMs },
      ...known,
    };
    const got = certificateFor(all);
    if (got.type === "pending") {
      assert.ok(Array.isArray(answer), JSON.stringify(got));
      assert.equal(got.reason, answer[0]);
      assert.match(got.message, answer[1]);
    } else {
      assert.equal(got.keyPem, "k");
      if (answer instanceof RegExp) assert.match(got.warning ?? "", answer);
      else assert.deepEqual([answer, got.warning], ["issued", undefined]);
    }
    const view = certificateView({ ...all, hostname: "a.test", requested: true });
    assert.equal(view.state, state);
    assert.ok(
      !JSON.stringify(view, (_, value) => (typeof value === "bigint" ? String(value) : value)).includes(
        '"k"',
      ),
    );
  });

test("keeps a certificate that no route requests any more, and shows it as unused", () => {
  const view = certificateView({
    ...{ hostname: "a.test", state: held, requested: false, running: false, refusal: undefined },
    ...{ pause, issuerName: "ACME", nowMs },
  });
  assert.deepEqual([view.state, view.message], ["unused", "no route needs it any more"]);
});
