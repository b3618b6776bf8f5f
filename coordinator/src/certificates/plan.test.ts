import assert from "node:assert/strict";
import { test } from "node:test";
import { type CertificateState, emptyCertificateState } from "./certificate-state.ts";
import { type Plan, type PlanInput, planCertificates } from "./plan.ts";

const DAY_MS = 24 * 3_600_000;
const NOW_MS = 1_000 * DAY_MS;
const ISSUER = { id: "acme", atOnce: 2 };

/** A certificate of `issuer` that began 10 days ago, ends in 80 and is renewed in 50. */
function held(
  hostname: string,
  changes: Partial<CertificateState> = {},
  endsInMs = 80 * DAY_MS,
): CertificateState {
  const certificate = {
    chainPem: "chain",
    keyPem: "key",
    notBeforeMs: NOW_MS - 10 * DAY_MS,
    notAfterMs: NOW_MS + endsInMs,
  };
  const renewAtMs = NOW_MS + 50 * DAY_MS;
  return { ...emptyCertificateState(hostname, ISSUER.id), certificate, renewAtMs, ...changes };
}

function plan(
  wanted: readonly string[],
  holdings: readonly CertificateState[],
  changes: Partial<PlanInput> = {},
): Plan {
  return planCertificates({
    wanted: new Set(wanted),
    holdings: new Map(holdings.map((holding) => [holding.hostname, holding])),
    running: new Set(),
    issuer: ISSUER,
    isRefused: () => false,
    nowMs: NOW_MS,
    ...changes,
  });
}

const nothing: Plan = { start: [], stop: [], forget: [], nextMs: undefined };
const start = (hostname: string, why: Plan["start"][number]["why"]) => ({ hostname, why });

const cases: readonly { readonly name: string; readonly got: Plan; readonly expected: Partial<Plan> }[] = [
  { name: "no hostnames, no certificates", got: plan([], []), expected: {} },
  { name: "a new hostname", got: plan(["a"], []), expected: { start: [start("a", "new")] } },
  {
    name: "a good certificate is left until it is due",
    got: plan(["a"], [held("a")]),
    expected: { nextMs: NOW_MS + 50 * DAY_MS },
  },
  {
    name: "one that is due",
    got: plan(["a"], [held("a", { renewAtMs: NOW_MS })]),
    expected: { start: [start("a", "renewal")] },
  },
  {
    name: "one that has ended",
    got: plan(["a"], [held("a", { renewAtMs: NOW_MS - 30 * DAY_MS }, -DAY_MS)]),
    expected: { start: [start("a", "renewal")] },
  },
  {
    name: "one whose renewal was requested",
    got: plan(["a"], [held("a", { renewalAskedAtMs: NOW_MS })]),
    expected: { start: [start("a", "asked")] },
  },
  {
    name: "one of another issuer",
    got: plan(["a"], [held("a", { issuer: "self-signed" })]),
    expected: { start: [start("a", "other-issuer")] },
  },
  {
    name: "a failed attempt waits for its time",
    got: plan(
      ["a"],
      [{ ...emptyCertificateState("a", "acme"), failures: 1, failedAtMs: NOW_MS, retryAtMs: NOW_MS + 5 }],
    ),
    expected: { nextMs: NOW_MS + 5 },
  },
  {
    name: "a failed renewal waits for its time, too",
    got: plan(["a"], [held("a", { renewAtMs: NOW_MS - DAY_MS, failures: 1, retryAtMs: NOW_MS + 5 })]),
    expected: { nextMs: NOW_MS + 5 },
  },
  {
    name: "a requested renewal waits for the time that the authority set",
    got: plan(["a"], [held("a", { renewalAskedAtMs: NOW_MS, retryAtAsked: true, retryAtMs: NOW_MS + 5 })]),
    expected: { nextMs: NOW_MS + 5 },
  },
  {
    name: "a paused issuer isn't asked",
    got: plan(["a", "b"], [held("b")], { pausedUntilMs: NOW_MS + 7 }),
    expected: { nextMs: NOW_MS + 7 },
  },
  { name: "what is refused", got: plan(["*.a"], [], { isRefused: () => true }), expected: {} },
  { name: "one that is running", got: plan(["a"], [], { running: new Set(["a"]) }), expected: {} },
  {
    name: "no more than so many at once, and those without a certificate first, then those that end first",
    got: plan(
      ["late", "new", "soon"],
      [held("late", { renewAtMs: NOW_MS }, 9 * DAY_MS), held("soon", { renewAtMs: NOW_MS }, DAY_MS)],
    ),
    expected: { start: [start("new", "new"), start("soon", "renewal")] },
  },
  {
    name: "running ones take places",
    got: plan(["a", "b", "c"], [], { running: new Set(["c"]) }),
    expected: { start: [start("a", "new")] },
  },
  {
    name: "a running order for a hostname that no route names any more",
    got: plan([], [], { running: new Set(["a"]) }),
    expected: { stop: ["a"] },
  },
  {
    name: "a valid certificate of an unused hostname is kept for routes that come back",
    got: plan([], [held("a")]),
    expected: { nextMs: NOW_MS + 80 * DAY_MS },
  },
  {
    name: "an expired certificate of an unused hostname is deleted",
    got: plan([], [held("a", {}, -1)]),
    expected: { forget: ["a"] },
  },
  {
    name: "failures are kept for a week, so that deleting and applying a route doesn't reset their count",
    got: plan([], [{ ...emptyCertificateState("a", "acme"), failures: 3, failedAtMs: NOW_MS - DAY_MS }]),
    expected: { nextMs: NOW_MS + 6 * DAY_MS },
  },
];

for (const { name, got, expected } of cases)
  test(name, () => assert.deepEqual(got, { ...nothing, ...expected }));
