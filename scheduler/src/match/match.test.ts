import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostPort, NodeSpec, Taint, Toleration } from "../types.ts";
import { conflictingPort } from "./host-ports.ts";
import { compileNodeDemand, compileTerm, namedNodes } from "./node-selector.ts";
import { selectorMatcher } from "./pod-matcher.ts";
import { formatTaint, tolerates } from "./taints.ts";

const node = (name: string, labels: Record<string, string> = {}): NodeSpec => ({
  name,
  labels,
  allocatable: {},
});

test("matches tolerations with taints", () => {
  const taint: Taint = { key: "gpu", value: "a", effect: "NoSchedule" };
  const table: [Toleration, boolean][] = [
    [{ operator: "Exists" }, true],
    [{ key: "gpu", operator: "Exists" }, true],
    [{ key: "cpu", operator: "Exists" }, false],
    [{ key: "gpu", value: "a" }, true],
    [{ key: "gpu", operator: "", value: "a" }, true],
    [{ key: "gpu", operator: "Equal", value: "b" }, false],
    [{ key: "gpu" }, false],
    [{ operator: "Equal", value: "a" }, false],
    [{ key: "gpu", value: "a", effect: "NoSchedule" }, true],
    [{ key: "gpu", value: "a", effect: "NoExecute" }, false],
    [{ key: "gpu", value: "a", effect: "" }, true],
  ];
  for (const [toleration, expected] of table)
    assert.equal(tolerates([toleration], taint), expected, JSON.stringify(toleration));
  assert.equal(
    tolerates([{ key: "gpu" }], { key: "gpu", effect: "NoSchedule" }),
    true,
    "no value equals no value",
  );
  assert.equal(tolerates(undefined, taint), false);
  assert.equal(formatTaint(taint), "gpu=a:NoSchedule");
});

test("host ports conflict on protocol and port, unless their addresses differ", () => {
  const table: [HostPort, HostPort, boolean][] = [
    [{ port: 80 }, { port: 80 }, true],
    [{ port: 80 }, { port: 81 }, false],
    [{ port: 80, protocol: "TCP" }, { port: 80, protocol: "" }, true],
    [{ port: 80, protocol: "UDP" }, { port: 80 }, false],
    [{ port: 80, hostIP: "10.0.0.1" }, { port: 80, hostIP: "10.0.0.2" }, false],
    [{ port: 80, hostIP: "10.0.0.1" }, { port: 80, hostIP: "10.0.0.1" }, true],
    [{ port: 80, hostIP: "10.0.0.1" }, { port: 80 }, true],
    [{ port: 80, hostIP: "0.0.0.0" }, { port: 80, hostIP: "10.0.0.2" }, true],
  ];
  for (const [a, b, expected] of table) {
    assert.equal(conflictingPort([a], [b]) !== undefined, expected, JSON.stringify([a, b]));
    assert.equal(conflictingPort([b], [a]) !== undefined, expected, JSON.stringify([b, a]));
  }
});

test("node affinity: terms are ORed, requirements of a term are ANDed, an empty term matches nothing", () => {
  const required = [
    {
      matchExpressions: [
        { key: "a", operator: "Exists" as const },
        { key: "b", operator: "DoesNotExist" as const },
      ],
    },
    { matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["n2"] }] },
    {},
  ];
  const test = compileNodeDemand({ nodeAffinity: { required } });
  assert.equal(test?.(node("n1", { a: "1" })), true);
  assert.equal(test?.(node("n1", { a: "1", b: "1" })), false);
  assert.equal(test?.(node("n2")), true);
  assert.equal(test?.(node("n3")), false);
  assert.equal(
    compileNodeDemand({ nodeAffinity: { required: [] } })?.(node("n1")),
    false,
    "no term, no node",
  );
  assert.equal(compileNodeDemand({}), undefined);
  assert.equal(compileTerm({ matchExpressions: [{ key: "a", operator: "In" }] }), undefined, "doesn't parse");
});

test("a node must match both the selector and the affinity", () => {
  const required = [{ matchExpressions: [{ key: "a", operator: "Exists" as const }] }];
  const test = compileNodeDemand({ nodeSelector: { disk: "ssd" }, nodeAffinity: { required } });
  assert.equal(test?.(node("n", { disk: "ssd", a: "" })), true);
  assert.equal(test?.(node("n", { disk: "ssd" })), false);
  assert.equal(test?.(node("n", { a: "" })), false);
});

test("names in all terms restrict the nodes; contradicting terms leave none", () => {
  const named = (...values: string[]) => ({ key: "metadata.name", operator: "In" as const, values });
  const names = (...terms: ReturnType<typeof named>[][]) =>
    namedNodes({ nodeAffinity: { required: terms.map((matchFields) => ({ matchFields })) } });
  assert.deepEqual([...(names([named("a")], [named("b")]) ?? [])], ["a", "b"]);
  assert.deepEqual([...(names([named("a"), named("b")]) ?? [])], []);
  assert.equal(names([named("a")], []), undefined);
});

test("an absent selector matches no pods, an empty one matches all pods, both within their namespaces", () => {
  const pod = { namespace: "default", labels: { app: "web" }, workload: undefined, revision: "2" };
  assert.equal(selectorMatcher(undefined, ["default"]).test(pod), false);
  assert.equal(selectorMatcher({}, ["default"]).test(pod), true);
  assert.equal(selectorMatcher({}, ["other", "more"]).test(pod), false);
  assert.equal(selectorMatcher({ matchLabels: { app: "web" } }, ["other", "default"]).test(pod), true);
  assert.equal(selectorMatcher({}, ["default"], "1").test(pod), false, "another revision");
  const ordered = { matchExpressions: [{ key: "app", operator: "Gt" as const, values: ["1"] }] };
  assert.throws(() => selectorMatcher(ordered, ["default"]), { code: "invalid_pod" });
});
