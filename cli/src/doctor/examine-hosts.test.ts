import assert from "node:assert/strict";
import { test } from "node:test";
import { ExamineNodesResponse } from "@forage/proto/forage/operator/v1/operator";
import { examineHosts } from "./examine-hosts.ts";
import type { Finding } from "./finding.ts";

type Fields = NonNullable<Parameters<typeof ExamineNodesResponse.fromPartial>[0]>;

function examined(node: string, fields: Omit<Fields, "node"> = {}): ExamineNodesResponse {
  return ExamineNodesResponse.fromPartial({ node, clockAheadMs: 3n, clockUncertaintyMs: 2, ...fields });
}

function aPeer(node: string, fields: NonNullable<Fields["peers"]>[number] = {}) {
  const sizes = { link: "eth0", linkMtu: 1_500, pathMtu: 1_500 };
  return { node, address: "10.0.0.2", port: 29_999, connection: "refused", ...sizes, ...fields };
}

function brief(findings: readonly Finding[]): string[] {
  return findings.map(({ subject, check, state, message }) => `${subject} ${check} ${state}: ${message}`);
}

/** Asserts that the findings other than ok match, and that each of them has a remedy. */
function assertWrong(responses: readonly ExamineNodesResponse[], ...expected: readonly RegExp[]): void {
  const wrong = examineHosts(responses).filter(({ state }) => state !== "ok");
  assert.equal(wrong.length, expected.length, brief(wrong).join("\n"));
  for (const [index, pattern] of expected.entries()) assert.match(brief(wrong)[index] ?? "", pattern);
  for (const { remedy, message } of wrong) assert.notEqual(remedy, "", message);
}

test("returns only ok findings for hosts without a problem", () => {
  const findings = [{ check: "disk", result: "ok", message: "50 GiB are left" }];
  const [a, b] = [examined("a", { findings, peers: [aPeer("b")] }), examined("b", { peers: [] })];
  assert.deepEqual(brief(examineHosts([a, b])), [
    "node/a clock-difference ok: agrees with the coordinator's clock",
    "node/a disk ok: 50 GiB are left",
    "node/b clock-difference ok: agrees with the coordinator's clock",
    "node/b reachable ok: from a",
    "node/b path-mtu ok: packets of 1500 bytes arrive",
  ]);
});

test("reports an unexamined node as unknown, and keeps the result of a check of its host", () => {
  const findings = [
    { check: "dns", result: "warning", message: "10.0.0.53 does not answer", remedy: "open port 53" },
    { check: "disk", result: "failure", message: "full", remedy: "free space" },
  ];
  assertWrong(
    [examined("a", { problem: "node a is not connected" }), examined("b", { findings })],
    /^node\/a host unknown: not examined: node a is not connected/,
    /^node\/b dns warning: 10\.0\.0\.53/,
    /^node\/b disk problem: full/,
  );
});

test("reports a clock as wrong if the duration of the request can't explain the difference", () => {
  const at = (clockAheadMs: bigint, clockUncertaintyMs = 10) => [
    examined("a", { clockAheadMs, clockUncertaintyMs }),
  ];
  assertWrong(at(1_000n));
  assertWrong(at(-9_000n, 8_500));
  assertWrong(at(2_040n), /clock-difference warning: the clock is 2 s ahead of the coordinator's/);
  assertWrong(at(-90_000n), /clock-difference problem: the clock is 90 s behind the coordinator's/);
  assert.deepEqual(examineHosts([examined("a", { clockAheadMs: undefined })]), []);
});

test("returns one finding for a node that some others can't reach, with their names", () => {
  const lost = { connection: "silent", pathMtu: 0 };
  assertWrong(
    [
      examined("a", { peers: [aPeer("d", lost)] }),
      examined("b", { peers: [aPeer("d", lost)] }),
      examined("c", { peers: [aPeer("d", { port: 20_001, serves: true, connection: "open" })] }),
    ],
    /^node\/d reachable problem: a, b of 3 that tried can't connect to 10\.0\.0\.2:29999: no answer, as where a firewall/,
  );
  assertWrong(
    [examined("a", { peers: [aPeer("d", { address: "fd00::2", connection: "EHOSTUNREACH" })] })],
    /can't connect to \[fd00::2\]:29999: no route leads there \(EHOSTUNREACH\)/,
  );
});

test("reports a refused connection only if a ready pod is served at the port", () => {
  assertWrong([examined("a", { peers: [aPeer("b", { serves: false })] })]);
  assertWrong(
    [examined("a", { peers: [aPeer("b", { serves: true })] })],
    /^node\/b reachable warning: a of 1 that tried: 10\.0\.0\.2:29999 refuses connections/,
  );
});

test("reports lost large packets as a problem, and ignores unmeasured paths", () => {
  assertWrong(
    [examined("a", { peers: [aPeer("b", { pathMtu: 1_280 })] })],
    /^node\/b path-mtu problem: a sends packets of 1500 bytes by eth0, and only those of up to 1280 reach 10\.0\.0\.2/,
  );
  assertWrong([examined("a", { peers: [aPeer("b", { pathMtu: 0 })] })]);
});
