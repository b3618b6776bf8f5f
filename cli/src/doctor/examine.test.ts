import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { Certificate, Node, Pod } from "@forage/proto/forage/operator/v1/operator";
import { toWireTime } from "../view/timestamp.ts";
import { examineCertificates, examineClock, examineNode, examinePods, examineVersions } from "./examine.ts";
import { type Finding, lifetimeFinding } from "./finding.ts";

const NOW_MS = Date.parse("2030-01-01T00:00:00Z");
const DAY_MS = 86_400_000;
const inDays = (days: number) => toWireTime(NOW_MS + days * DAY_MS);

function aNode(fields: Parameters<typeof Node.fromPartial>[0] = {}): Node {
  return Node.fromPartial({
    ...{ name: "n1", ready: true, agentVersion: "1.0.0", lastSeenAt: inDays(0), certificateEnds: inDays(20) },
    ...fields,
  });
}

function brief(findings: readonly Finding[]): string[] {
  return findings.map(({ subject, check, state, message }) => `${subject} ${check} ${state}: ${message}`);
}

/** Asserts that exactly the findings of problems have a remedy. */
function assertRemedies(findings: readonly Finding[]): void {
  for (const { state, remedy, message } of findings) assert.equal(remedy === "", state === "ok", message);
}

describe("nodes", () => {
  test("returns only ok findings for a node without a problem", () =>
    assert.deepEqual(brief(examineNode(aNode(), NOW_MS)), [
      "node/n1 ready ok: ready",
      "node/n1 certificate ok: valid for 20 more days, until 2030-01-21",
    ]));

  test("gives remedies for readiness, conditions, certificate and gateway of a node", () => {
    const conditions = [
      { type: "DiskPressure", status: true, message: "97 % used" },
      { type: "RuntimeReady", status: false, reason: "NoContainerd" },
      { type: "NetworkReady", status: true },
    ];
    const node = aNode({
      ...{ ready: false, unreachable: true, message: "no heartbeat for 9 s", certificateEnds: inDays(-1) },
      report: { conditions },
      gateway: { name: "default", ready: true, upToDate: false },
    });
    const findings = examineNode(node, NOW_MS);
    assert.deepEqual(brief(findings), [
      "node/n1 ready problem: no heartbeat for 9 s",
      "node/n1 DiskPressure problem: 97 % used",
      "node/n1 RuntimeReady problem: NoContainerd",
      "node/n1 certificate problem: expired on 2029-12-31",
      "node/n1 gateway problem: has not applied the newest routes",
    ]);
    assertRemedies(findings);
  });
});

test("warns of a certificate that expires soon", () => {
  const finding = lifetimeFinding("x", {
    endsMs: NOW_MS + 1.5 * DAY_MS,
    nowMs: NOW_MS,
    warnDays: 3,
    remedy: "y",
  });
  assert.deepEqual(brief([finding]), ["x certificate warning: valid for 1 more day, until 2030-01-02"]);
  assertRemedies([finding]);
});

test("names the nodes of each version if versions differ", () => {
  assert.deepEqual(brief(examineVersions([aNode()], "1.0.0")), ["nodes versions ok: all run 1.0.0"]);
  const nodes = [aNode(), ...[1, 2, 3, 4, 5, 6].map((n) => aNode({ name: `m${n}`, agentVersion: "0.9.0" }))];
  const findings = examineVersions(nodes, "1.0.0");
  assert.deepEqual(brief(findings), [
    "nodes versions warning: this command is 1.0.0; agents: 1.0.0 on n1; 0.9.0 on m1, m2, m3, m4, m5 and 1 more",
  ]);
  assertRemedies(findings);
  assert.deepEqual(examineVersions([], "1.0.0"), []);
});

test("compares the clocks by the newest heartbeat of a ready node", () => {
  const at = (ms: number) => examineClock([aNode({ lastSeenAt: toWireTime(NOW_MS + ms) })], NOW_MS);
  for (const ms of [4_000, 0, -20_000]) assert.equal(at(ms)[0]?.state, "ok", `${ms}`);
  assert.match(at(90_000)[0]?.message ?? "", /90 s ahead of/);
  assert.match(at(-90_000)[0]?.message ?? "", /90 s behind/);
  assertRemedies([...at(90_000), ...at(0)]);
  assert.deepEqual(examineClock([aNode({ ready: false })], NOW_MS), []);
});

test("reports expiring and failed certificates of routes", () => {
  const findings = examineCertificates(
    [
      Certificate.fromPartial({ hostname: "a", state: "ready", notAfter: inDays(60) }),
      Certificate.fromPartial({ hostname: "b", state: "ready", notAfter: inDays(5) }),
      Certificate.fromPartial({
        hostname: "c",
        state: "failed",
        message: "no challenge",
        notAfter: inDays(60),
      }),
      Certificate.fromPartial({ hostname: "d", state: "issuing" }),
      Certificate.fromPartial({ hostname: "e", state: "unused" }),
    ],
    NOW_MS,
  );
  assert.deepEqual(
    findings.map(({ subject, state }) => `${subject} ${state}`),
    ["certificate/a ok", "certificate/b warning", "certificate/c problem", "certificate/d warning"],
  );
  assertRemedies(findings);
});

test("counts the pods with problems, and names some of them", () => {
  const running = { phase: PodPhase.RUNNING, ready: true };
  const good = Pod.fromPartial({ namespace: "shop", name: "good", status: running });
  const bad = Pod.fromPartial({ namespace: "shop", name: "bad", unschedulable: "no node fits" });
  assert.deepEqual(brief(examinePods([good])), ["pods running ok: none of 1 has a problem"]);
  const findings = examinePods([good, bad]);
  assert.deepEqual(brief(findings), ["pods running warning: 1 of 2 are not ready: shop/bad (Unplaced)"]);
  assertRemedies(findings);
});
