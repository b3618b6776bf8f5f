import { didYouMean } from "../command/suggest.ts";
import type { Field } from "../conversion/field.ts";

/** Part of a manifest under construction, with the field names of the contract. */
export type Draft = Record<string, unknown>;

/** The parts of the files to which other parts refer. */
export interface Scope {
  /** The port numbers by the names that the pod's containers give them. */
  readonly ports: ReadonlyMap<string, number>;
  /** The name of the container that is being read. */
  readonly container: string;
  /** The pod's volumes that are omitted. Their mounts are omitted as well. */
  readonly lostVolumes: ReadonlySet<string>;
  /** Returns the keys of a config map or secret; undefined if the files contain no such object. */
  readonly keysOf: (kind: "ConfigMap" | "Secret", name: string) => readonly string[] | undefined;
}

/** The scope of parts that refer to nothing. */
export const NO_SCOPE: Scope = {
  ports: new Map(),
  container: "",
  lostVolumes: new Set(),
  keysOf: () => undefined,
};

/** Reads a field into the draft. `key` is the field name of the contract. */
export type ReadField = (field: Field, into: Draft, key: string, scope: Scope) => void;

/** The rule for one field: how it is converted, or the reason why it is not. */
export type Rule =
  | ReadField
  /** The field can't be converted. `false`, 0 and empty values are ignored. */
  | { readonly lost: string }
  /** The field has no effect in Forage. The reason is for readers of the table. */
  | { readonly noEffect: string };

export type Rules = Readonly<Record<string, Rule>>;

export const lost = (reason: string): Rule => ({ lost: reason });
export const noEffect = (reason: string): Rule => ({ noEffect: reason });

/**
 * Reads each field of a mapping by its rule. Fields without a rule are problems. Returns `into`.
 */
export function readFields(field: Field, rules: Rules, scope: Scope, into: Draft = {}): Draft {
  for (const [key, value] of field.entries()) {
    if (value.kind === "null") continue;
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    if (rule === undefined) value.fail(`is an unknown field${didYouMean(key, Object.keys(rules))}`);
    else if (typeof rule === "function") rule(value, into, key, scope);
    else if ("lost" in rule && !isEmpty(value)) value.lose(rule.lost);
  }
  return into;
}

function isEmpty(field: Field): boolean {
  if (field.kind === "map") return field.entries().length === 0;
  if (field.kind === "list") return field.items().length === 0;
  return ["", "0", "false"].includes(field.text());
}

export const text: ReadField = (field, into, key) => {
  into[snakeCase(key)] = field.text();
};

export const whole: ReadField = (field, into, key) => {
  into[snakeCase(key)] = field.whole();
};

export const flag: ReadField = (field, into, key) => {
  into[snakeCase(key)] = field.switch();
};

export const texts: ReadField = (field, into, key) => {
  into[snakeCase(key)] = field.items().map((item) => item.text());
};

export const textMap: ReadField = (field, into, key) => {
  into[snakeCase(key)] = textsOf(field);
};

/**
 * Reads a whole number other than 0, because a manifest does not distinguish 0 from an unset
 * number.
 */
export function nonZero(meaningOfNone: string): ReadField {
  return (field, into, key) => {
    const number = field.whole();
    if (number === 0) field.lose(`can't be 0: that means ${meaningOfNone} here`);
    else into[snakeCase(key)] = number;
  };
}

/** Reads a mapping by its own rules. */
export function part(rules: Rules): ReadField {
  return (field, into, key, scope) => {
    into[snakeCase(key)] = readFields(field, rules, scope);
  };
}

/** Reads a list of mappings by their own rules. */
export function list(rules: Rules): ReadField {
  return (field, into, key, scope) => {
    into[snakeCase(key)] = field.items().map((item) => readFields(item, rules, scope));
  };
}

/** Reads a field under another name of the contract. */
export function as(name: string, read: ReadField): ReadField {
  return (field, into, _key, scope) => read(field, into, name, scope);
}

/**
 * Reads one of the given texts; reports others with the reason. With `isDefault`, the texts
 * describe what Forage does anyway, and are omitted.
 */
export function oneOf(values: readonly string[], reason: string, isDefault = false): ReadField {
  return (field, into, key) => {
    const value = field.text();
    if (!values.includes(value)) field.lose(`"${value}" ${reason}`);
    else if (!isDefault) into[snakeCase(key)] = value;
  };
}

/** Reads a port number, or the name that a container gives to a port. */
export const port: ReadField = (field, into, key, { ports }) => {
  const written = field.text();
  const number = /^\d+$/.test(written) ? Number(written) : ports.get(written);
  if (number === undefined) field.fail(`"${written}" is not the name of a container's port`);
  else into[snakeCase(key)] = number;
};

export function textsOf(field: Field): Record<string, string> {
  return Object.fromEntries(
    field.entries().map(([key, value]) => [key, value.kind === "null" ? "" : value.text()]),
  );
}

/** Converts camelCase to snake_case: `httpGet` becomes `http_get`. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
