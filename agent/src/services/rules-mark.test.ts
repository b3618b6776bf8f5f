import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServicePortRules } from "./port-rules.ts";
import { RulesMark } from "./rules-mark.ts";

const OPTIONS = { table: "t", podCidr: "10.64.0.0/16", virtualIpRanges: ["10.96.0.0/16"], balancerIps: [] };

test("equal tables have the same mark, whatever changes led to them", () => {
  const marks = new RulesMark();
  const mark = marks.of(OPTIONS, byId(rule("a"), rule("b")));
  assert.match(mark, /^made_[0-9a-f]{32}$/);
  assert.equal(marks.of({ ...OPTIONS, table: "other" }, byId(rule("b"), rule("a"))), mark);
  assert.equal(new RulesMark().of(OPTIONS, byId(rule("a"), rule("b"))), mark);
});

test("each change of the table changes the mark", () => {
  const marks = new RulesMark();
  const rules = byId(rule("a"), rule("b"));
  const others = [
    marks.of(OPTIONS, new Map()),
    marks.of(OPTIONS, byId(rule("a"))),
    marks.of(OPTIONS, byId(rule("a"), rule("b", { addresses: ["10.96.0.9 . tcp . 80"] }))),
    marks.of(OPTIONS, byId(rule("a"), rule("b", { nodePort: "tcp . 30080" }))),
    marks.of(OPTIONS, byId(rule("a"), rule("b", { affinitySeconds: 60 }))),
    marks.of(OPTIONS, byId(rule("a"), rule("b", { endpoints: [] }))),
    marks.of({ ...OPTIONS, virtualIpRanges: ["10.97.0.0/16"] }, rules),
    marks.of({ ...OPTIONS, balancerIps: ["192.0.2.1"] }, rules),
    marks.of(OPTIONS, rules),
  ];
  assert.equal(new Set(others).size, others.length);
});

function rule(id: string, fields: Partial<ServicePortRules> = {}): ServicePortRules {
  return {
    family: 4,
    id,
    protocol: "tcp",
    addresses: [`10.96.0.${id.charCodeAt(0)} . tcp . 80`],
    nodePort: undefined,
    endpoints: [{ id: "e", address: "10.64.0.2", port: 8080 }],
    affinitySeconds: 0,
    ...fields,
  };
}

function byId(...rules: readonly ServicePortRules[]): Map<string, ServicePortRules> {
  return new Map(rules.map((it) => [it.id, it]));
}
