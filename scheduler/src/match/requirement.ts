import type { SelectorRequirement } from "../types.ts";

export type ValueTest = (actual: string | undefined) => boolean;

const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;
const LABEL_VALUE_MAX = 63;
const INTEGER = /^[+-]?[0-9]{1,19}$/;
const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

/** Compiles a test of a label's value. Returns undefined if the requirement is malformed. */
export function compileRequirement({ operator, values = [] }: SelectorRequirement): ValueTest | undefined {
  if (values.some((value) => value.length > LABEL_VALUE_MAX || !LABEL_VALUE.test(value))) return undefined;
  switch (operator) {
    case "In":
      return values.length > 0 ? oneOf(values) : undefined;
    case "NotIn": {
      const found = oneOf(values);
      return values.length > 0 ? (actual) => !found(actual) : undefined;
    }
    case "Exists":
      return values.length === 0 ? (actual) => actual !== undefined : undefined;
    case "DoesNotExist":
      return values.length === 0 ? (actual) => actual === undefined : undefined;
    case "Gt":
    case "Lt":
      return values.length === 1 ? compareTo(values[0], operator) : undefined;
    default:
      return undefined;
  }
}

function oneOf(values: readonly string[]): ValueTest {
  if (values.length === 1) return (actual) => actual === values[0];
  const set = new Set(values);
  return (actual) => actual !== undefined && set.has(actual);
}

function compareTo(value: string | undefined, operator: "Gt" | "Lt"): ValueTest | undefined {
  const bound = int64(value);
  if (bound === undefined) return undefined;
  return (actual) => {
    const number = int64(actual);
    if (number === undefined) return false;
    return operator === "Gt" ? number > bound : number < bound;
  };
}

function int64(text: string | undefined): bigint | undefined {
  if (text === undefined || !INTEGER.test(text)) return undefined;
  const number = BigInt(text.startsWith("+") ? text.slice(1) : text);
  return number <= INT64_MAX && number >= INT64_MIN ? number : undefined;
}
