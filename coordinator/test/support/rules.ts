import assert from "node:assert/strict";
import { describe, test } from "node:test";

/** Tests a rule that returns the problem with a value, or undefined. */
export function describeRule<T>(
  name: string,
  rule: (value: T) => string | undefined,
  { valid, invalid }: { readonly valid: readonly T[]; readonly invalid: readonly T[] },
): void {
  describe(name, () => {
    for (const value of valid) {
      test(`accepts ${shown(value)}`, () => assert.equal(rule(value), undefined));
    }
    for (const value of invalid) {
      test(`refuses ${shown(value)}`, () => assert.match(rule(value) ?? "", /\w/));
    }
  });
}

function shown(value: unknown): string {
  const text = JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${v}` : v));
  return text.length <= 60 ? text : `${text.slice(0, 50)}… (${text.length} characters)`;
}
