import { CliError } from "../errors.ts";

/** A parsed `-l` flag, all of whose conditions must be met. */
export interface Selector {
  /** The conditions that the coordinator evaluates. */
  readonly equal: Record<string, string>;
  /** Reports whether labels meet the other conditions. */
  readonly matches: (labels: Readonly<Record<string, string>>) => boolean;
  /**
   * Reports whether labels meet all conditions, for objects that the coordinator lists without a
   * selector.
   */
  readonly isMet: (labels: Readonly<Record<string, string>>) => boolean;
  /** Whether there are no conditions besides `equal`. */
  readonly isEqualOnly: boolean;
  readonly isEmpty: boolean;
}

type Requirement =
  | { readonly type: "in" | "not-in"; readonly key: string; readonly values: readonly string[] }
  | { readonly type: "exists" | "missing"; readonly key: string };

export const SELECTOR_FLAG = {
  type: "list",
  short: "l",
  hint: "SELECTOR",
  help: "only with these labels: key=value, key!=value, 'key in (a,b)', 'key notin (a,b)', key, '!key'; commas mean and",
} as const;

const FORMS = "key=value, key!=value, 'key in (a,b)', 'key notin (a,b)', key or '!key'";
/** The syntax that the coordinator accepts for keys and values. */
const NAME = "[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?";
const KEY_PATTERN = new RegExp(`^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?${NAME}$`);
const VALUE_PATTERN = new RegExp(`^(?:${NAME})?$`);

/** Parses a selector in Kubernetes' syntax. Throws USAGE for other texts. */
export function parseSelector(flag: string, given: readonly string[]): Selector {
  const requirements = given.flatMap((text) => split(text).map((part) => parse(flag, part)));
  const equal = new Map<string, string>();
  const rest: Requirement[] = [];
  for (const requirement of requirements) {
    const [only] = requirement.type === "in" && requirement.values.length === 1 ? requirement.values : [];
    // The coordinator accepts one value for each key; a second one, which can't match, is evaluated
    // here.
    if (only === undefined || equal.has(requirement.key)) rest.push(requirement);
    else equal.set(requirement.key, only);
  }
  const matches = (labels: Readonly<Record<string, string>>): boolean =>
    rest.every((requirement) => satisfies(requirement, labels));
  return {
    equal: Object.fromEntries(equal),
    matches,
    isMet: (labels) => [...equal].every(([key, value]) => labels[key] === value) && matches(labels),
    isEqualOnly: rest.length === 0,
    isEmpty: requirements.length === 0,
  };
}

/** Splits a text at commas outside of parentheses. */
function split(text: string): string[] {
  return text.split(/,(?![^(]*\))/).map((part) => part.trim());
}

function parse(flag: string, text: string): Requirement {
  const [, setKey = "", word, list = ""] = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(text) ?? [];
  if (word !== undefined) {
    const values = list.split(",").map((value) => value.trim());
    return check(flag, text, { type: word === "in" ? "in" : "not-in", key: setKey, values });
  }
  const [, key = "", operator, value = ""] = /^([^=!\s]+)\s*(==|!=|=)\s*([^=!\s]*)$/.exec(text) ?? [];
  if (operator !== undefined)
    return check(flag, text, { type: operator === "!=" ? "not-in" : "in", key, values: [value] });
  return text.startsWith("!")
    ? check(flag, text, { type: "missing", key: text.slice(1).trim() })
    : check(flag, text, { type: "exists", key: text });
}

function check(flag: string, text: string, requirement: Requirement): Requirement {
  const values = "values" in requirement ? requirement.values : [];
  if (!KEY_PATTERN.test(requirement.key))
    throw new CliError("USAGE", `${flag}: "${text}" is not a selector such as ${FORMS}`);
  const wrong = values.find((value) => !VALUE_PATTERN.test(value));
  if (wrong === undefined) return requirement;
  throw new CliError("USAGE", `${flag}: "${text}": "${wrong}" can't be the value of a label`);
}

function satisfies(requirement: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
  switch (requirement.type) {
    case "in":
      return value !== undefined && requirement.values.includes(value);
    case "not-in":
      return value === undefined || !requirement.values.includes(value);
    case "exists":
      return value !== undefined;
    case "missing":
      return value === undefined;
    default:
      return requirement satisfies never;
  }
}
