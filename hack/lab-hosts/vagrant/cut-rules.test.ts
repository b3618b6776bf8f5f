import assert from "node:assert/strict";
import { test } from "node:test";
import { cutRules, REJOIN_RULES } from "./cut-rules.ts";

test("a host that is cut off exchanges frames only with its peers on this interface", () => {
  const rules = cutRules("eth1", ["02:00:00:00:00:01", "02:00:00:00:00:02"]);
  assert.ok(rules.startsWith(REJOIN_RULES), "it replaces the rules of an earlier cut");
  assert.match(
    rules,
    /hook ingress device "eth1" .*policy drop;\n *ether saddr \{ 02:00:00:00:00:01, 02:00:00:00:00:02 \} accept\n/,
  );
  assert.match(
    rules,
    /hook egress device "eth1" .*policy drop;\n *ether daddr \{ 02:00:00:00:00:01, 02:00:00:00:00:02 \} accept\n/,
  );
});

test("a host that is cut off without peers sends and receives nothing", () => {
  assert.doesNotMatch(cutRules("eth1", []), /accept/);
});
