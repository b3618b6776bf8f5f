import assert from "node:assert/strict";
import { test } from "node:test";
import { aRoute } from "../../test/support/gateway/a-route.ts";
import { conditionsOf } from "./conditions.ts";
import type { RouteFindings } from "./findings.ts";

const NODE = { node: "n1", ready: true, applied: true, message: "" };

function resolvedRefs(messages: readonly string[]): string | undefined {
  const findings: RouteFindings = {
    ...{ route: aRoute({}), hostnames: [], conflicts: [], certificates: [] },
    refs: messages.map((message) => ({ reason: "BackendNotFound", message })),
  };
  return conditionsOf(findings, [NODE]).find(({ type }) => type === "ResolvedRefs")?.message;
}

test("names five distinct reasons, and counts further ones", () => {
  assert.equal(resolvedRefs(["a", "b", "a", "c", "d", "e"]), "a; b; c; d; e");
  assert.equal(resolvedRefs(["a", "b", "c", "d", "e", "f", "g"]), "a; b; c; d; e; and 2 more");
});

test("counts the gateways that serve the route, and says why others don't", () => {
  const findings: RouteFindings = {
    ...{ route: aRoute({}), hostnames: [], refs: [], conflicts: [], certificates: [] },
  };
  const lacking = { ...NODE, node: "n2", applied: false, message: "not applied yet" };
  const programmed = conditionsOf(findings, [NODE, lacking]).at(-1);
  assert.deepEqual(programmed, {
    ...{ type: "Programmed", status: false, reason: "Pending" },
    message: "1 of 2 gateways serve its current version; n2: not applied yet",
  });
});
