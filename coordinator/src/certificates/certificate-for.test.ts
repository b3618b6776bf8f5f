import assert from "node:assert/strict";
import { test } from "node:test";
import { certificateFor, type Known } from "./certificate-for.ts";
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
const pause = { failures: 1, error: "out of reach", untilMs: nowMs + 60_000, asked: false };

interface Case {
  readonly name: string;
  readonly known: Partial<Known>;
  /** Reason and message of one that is pending, or the warning of one that is there. */
  readonly answer: readonly [string, RegExp] | "issued" | RegExp;
  readonly state: string;
}

const cases: readonly Case[] = [
  {
    name: "not requested yet",
    known: {},
    answer: ["Issuing", /^a certificate is being asked of ACME$/],
    state: "issuing",
  },
  { name: "running", known: { running: true }, answer: ["Issuing", /being asked of/], state: "issuing" },
  {
    name: "failed",
    known: { holding: { ...emptyCertificateState("a.test", "acme"), ...failing } },
    answer: ["IssueFailed", /^caa: forbidden \(tried again at 2026-03-01T01:00:00Z\)$/],
    state: "failed",
  },
  {
    name: "failed, and running again",
    known: { holding: { ...emptyCertificateState("a.test", "acme"), ...failing }, running: true },
    answer: ["Issuing", /asked of ACME; caa: forbidden/],
    state: "issuing",
  },
  {
    name: "the issuer is left alone",
    known: { pause },
    answer: ["IssuerUnavailable", /^out of reach \(tried again at 2026-03-01T00:01:00Z\)$/],
    state: "failed",
  },
  {
    name: "the pause is over",
    known: { pause: { ...pause, untilMs: nowMs } },
    answer: ["Issuing", /asked/],
    state: "issuing",
  },
  {
    name: "refused",
    known: { refusal: "no wildcards" },
    answer: ["Refused", /^no wildcards$/],
    state: "refused",
  },
  { name: "there", known: { holding: held }, answer: "issued", state: "ready" },
  {
    name: "there while the next is made",
    known: { holding: held, running: true },
    answer: "issued",
    state: "ready",
  },
  {
    name: "there, and nothing is needed of an issuer out of reach",
    known: { holding: held, pause },
    answer: "issued",
    state: "ready",
  },
  {
    name: "due, and the issuer is out of reach",
    known: { holding: { ...held, renewAtMs: nowMs }, pause },
    answer: /^it ends at 2026-03-01T01:00:00Z and can't be renewed: out of reach/,
    state: "ready",
  },
  {
    name: "there, but the renewal fails",
    known: { holding: { ...held, ...failing } },
    answer: /^it ends at 2026-03-01T01:00:00Z and can't be renewed: caa: forbidden/,
    state: "ready",
  },
  {
    name: "there, of an issuer before this one, which makes none for such a name",
    known: { holding: held, refusal: "no wildcards" },
    answer: /can't be renewed: no wildcards/,
    state: "ready",
  },
  {
    name: "ended",
    known: { holding: { ...ended, ...failing } },
    answer: /^it ended at 2026-03-01T00:00:00Z and can't be renewed: caa/,
    state: "expired",
  },
  {
    name: "ended between two evaluations",
    known: { holding: ended },
    answer: /^it ended at 2026-03-01T00:00:00Z and is being renewed$/,
    state: "expired",
  },
];

for (const { name, known, answer, state } of cases)
  test(name, () => {
    const all: Known = {
      ...{ holding: undefined, refusal: undefined, running: false, pause: undefined },
      ...{ issuerName: "ACME", nowMs },
      ...known,
    };
    const got = certificateFor(all);
    if (got.kind === "pending") {
      assert.ok(Array.isArray(answer), JSON.stringify(got));
      assert.equal(got.reason, answer[0]);
      assert.match(got.message, answer[1]);
    } else {
      assert.equal(got.keyPem, "k");
      if (answer instanceof RegExp) assert.match(got.warning ?? "", answer);
      else assert.deepEqual([answer, got.warning], ["issued", undefined]);
    }
    const view = certificateView({ ...all, hostname: "a.test", wanted: true });
    assert.equal(view.state, state);
    assert.ok(
      !JSON.stringify(view, (_, value) => (typeof value === "bigint" ? String(value) : value)).includes(
        '"k"',
      ),
    );
  });

test("a certificate that no route requests any more is kept and shown as such", () => {
  const view = certificateView({
    ...{ hostname: "a.test", holding: held, wanted: false, running: false, refusal: undefined },
    ...{ pause, issuerName: "ACME", nowMs },
  });
  assert.deepEqual([view.state, view.message], ["unused", "no route needs it any more"]);
});
