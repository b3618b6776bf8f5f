import assert from "node:assert/strict";
import { test } from "node:test";
import { type CertificateState, emptyCertificateState } from "./certificate-state.ts";
import { type Plan, type PlanInput, planCertificates } from "./plan.ts";

const DAY_MS = 24 * 3_600_000;
const NOW_MS = 1_000 * DAY_MS;
const ISSUER = { id: "acme", atOnce: 2 };

/**
 * Returns a certificate of `issuer` that was issued 10 days ago, expires in 80 and is renewed in
 * 50.
 */
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
  requested: readonly string[],
  states: readonly CertificateState[],
  changes: Partial<PlanInput> = {},
): Plan {
  return planCertificates({
    requested: new Set(requested),
    states: new Map(states.map((state) => [state.hostname, state])),
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
  { name: "does nothing without hostnames", got: plan([], []), expected: {} },
  {
    name: "starts an attempt for a new hostname",
    got: plan(["a"], []),
    expected: { start: [start("a", "new")] },
  },
  {
    name: "keeps a valid certificate until its renewal is due",
    got: plan(["a"], [held("a")]),
    expected: { nextMs: NOW_MS + 50 * DAY_MS },
  },
  {
    name: "renews a certificate that is due",
    got: plan(["a"], [held("a", { renewAtMs: NOW_MS })]),
    expected: { start: [start("a", "renewal")] },
  },
  {
    name: "renews an expired certificate",
    got: plan(["a"], [held("a", { renewAtMs: NOW_MS - 30 * DAY_MS }, -DAY_MS)]),
    expected: { start: [start("a", "renewal")] },
  },
  {
    name: "renews a certificate whose renewal was requested",
    got: plan(["a"], [held("a", { renewalRequestedAtMs: NOW_MS })]),
    expected: { start: [start("a", "requested")] },
  },
  {
    name: "replaces a certificate of another issuer",
    got: plan(["a"], [held("a", { issuer: "self-signed" })]),
    expected: { start: [start("a", "other-issuer")] },
  },
  {
    name: "delays a failed attempt",
    got: plan(
      ["a"],
      [{ ...emptyCertificateState("a", "acme"), failures: 1, failedAtMs: NOW_MS, retryAtMs: NOW_MS + 5 }],
    ),
    expected: { nextMs: NOW_MS + 5 },
  },
  {
    name: "delays a failed renewal",
    got: plan(["a"], [held("a", { renewAtMs: NOW_MS - DAY_MS, failures: 1, retryAtMs: NOW_MS + 5 })]),
    expected: { nextMs: NOW_MS + 5 },
  },
  {
    name: "delays a requested renewal as the authority requested",
    got: plan(
      ["a"],
      [held("a", { renewalRequestedAtMs: NOW_MS, retryAtRequested: true, retryAtMs: NOW_MS + 5 })],
    ),
    expected: { nextMs: NOW_MS + 5 },
  },
  {
    name: "sends no requests to a paused issuer",
    got: plan(["a", "b"], [held("b")], { pausedUntilMs: NOW_MS + 7 }),
    expected: { nextMs: NOW_MS + 7 },
  },
  {
    name: "makes no attempt for refused hostnames",
    got: plan(["*.a"], [], { isRefused: () => true }),
    expected: {},
  },
  {
    name: "makes no second attempt while one is running",
    got: plan(["a"], [], { running: new Set(["a"]) }),
    expected: {},
  },
  {
    name: "no more than so many at once, and those without a certificate first, then those that end first",
    got: plan(
      ["late", "new", "soon"],
      [held("late", { renewAtMs: NOW_MS }, 9 * DAY_MS), held("soon", { renewAtMs: NOW_MS }, DAY_MS)],
    ),
    expected: { start: [start("new", "new"), start("soon", "renewal")] },
  },
  {
    name: "counts running attempts against the limit",
    got: plan(["a", "b", "c"], [], { running: new Set(["c"]) }),
    expected: { start: [start("a", "new")] },
  },
  {
    name: "cancels a running attempt for a hostname that is no longer requested",
    got: plan([], [], { running: new Set(["a"]) }),
    expected: { stop: ["a"] },
  },
  {
    name: "keeps a valid certificate of an unused hostname for routes that return",
    got: plan([], [held("a")]),
    expected: { nextMs: NOW_MS + 80 * DAY_MS },
  },
  {
    name: "deletes an expired certificate of an unused hostname",
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
