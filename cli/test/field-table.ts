import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Field } from "../src/conversion/field.ts";
import { type Draft, NO_SCOPE, type Rules, readFields, type Scope } from "../src/kubernetes/rules.ts";
import { parseSource } from "../src/manifest/document.ts";
import type { Problem } from "../src/manifest/problem.ts";

/** The expected effect of a field: it is lost, it has no effect, or it results in a draft. */
export type Expected = "lost" | "no effect" | Draft;

export interface ReadResult {
  readonly draft: Draft;
  readonly problems: readonly Problem[];
  readonly losses: readonly Problem[];
}

/** The scope of the tables: two named ports, and the container `app`. */
const SCOPE: Scope = { ...NO_SCOPE, ports: new Map([["http", 8080]]), container: "app" };

/** Reads a mapping by the rules. */
export function read(rules: Rules, yaml: string, scope = SCOPE): ReadResult {
  const [document] = parseSource({ name: "k8s.yaml", text: yaml }).documents;
  assert.ok(document !== undefined, yaml);
  const problems: Problem[] = [];
  const losses: Problem[] = [];
  const field = new Field(document.root, "", {
    document,
    env: {},
    fail: (problem) => void problems.push(problem),
    lose: (problem) => void losses.push(problem),
  });
  return { draft: readFields(field, rules, scope), problems, losses };
}

/** Tests every field of a message. The table must have exactly the fields of the rules. */
export function testFields(
  message: string,
  rules: Rules,
  fields: Readonly<Record<string, readonly [yaml: string, expected: Expected]>>,
): void {
  describe(`every field of a ${message}`, () => {
    test("is in the table", () => assert.deepEqual(Object.keys(fields).sort(), Object.keys(rules).sort()));
    for (const [name, [yaml, expected]] of Object.entries(fields))
      test(`${name} is ${typeof expected === "string" ? expected : "carried over"}`, () => {
        const { draft, problems, losses } = read(rules, `{${name}: ${yaml}}`);
        assert.deepEqual(problems, []);
        if (expected === "lost") assert.match(losses[0]?.path ?? "", new RegExp(`^${name}`));
        else assert.deepEqual(losses, []);
        if (typeof expected === "object") assert.deepEqual(draft, expected);
        else assert.deepEqual(withoutEmpty(draft), {});
      });
  });
}

/** Removes a part that is empty because its only field is lost. */
function withoutEmpty(draft: Draft): Draft {
  return Object.fromEntries(
    Object.entries(draft).filter(([, value]) => !(Array.isArray(value) && value.length === 0)),
  );
}
