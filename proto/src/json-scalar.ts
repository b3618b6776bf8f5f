import type { FieldSchema } from "../gen/forest-schema.ts";
import { parseDuration } from "./duration-json.ts";

export type Checked =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** A value of JSON or YAML that is neither an object nor a list. */
export interface JsonScalar {
  readonly value: unknown;
  /** The source text of a number, needed for numbers beyond 53 bits. Empty if unknown. */
  readonly source: string;
}

/**
 * Returns a hint for a known name that is close to a wrong one, such as ` (did you mean "text"?)`; empty if there is
 * none.
 */
export type Suggest = (wrong: string, known: readonly string[]) => string;

/** Checks a single value against the field's type in proto-JSON, and returns it in the form that `fromJSON` reads. */
export function checkScalar({ value, source }: JsonScalar, field: FieldSchema, suggest: Suggest): Checked {
  switch (field.kind) {
    case "enum":
      return checkEnum(value, field, suggest);
    case "duration":
      return checkDuration(value);
    case "scalar":
      return checkPlain(value, source, field);
    default:
      return bad(`must be ${describe(field)}`);
  }
}

/** Returns the kind of value of a field, with an article: `a mapping`, `text`, `a whole number`. */
export function describe({ kind, type, values }: Pick<FieldSchema, "kind" | "type" | "values">): string {
  if (kind === "message") return "a mapping";
  if (kind === "enum") return `one of ${values.join(", ")}`;
  if (kind === "duration") return 'a duration such as "30s" or "1.5s"';
  if (type === "string") return "text";
  if (type === "bool") return "true or false";
  if (type === "bytes") return "base64 text";
  return type === "double" || type === "float" ? "a number" : "a whole number";
}

function checkPlain(value: unknown, source: string, field: FieldSchema): Checked {
  switch (field.type) {
    case "string":
      if (typeof value === "string") return good(value);
      return bad(source === "" ? "must be text" : `must be text; write it in quotes: "${source}"`);
    case "bool":
      if (typeof value === "boolean") return good(value);
      return bad(`must be true or false${typeof value === "string" ? `, not "${value}"` : ""}`);
    case "bytes":
      return checkBytes(value);
    case "double":
    case "float":
      return checkNumber(value);
    default:
      return checkInteger(value, source, field.type);
  }
}

const RANGES: Readonly<Record<string, readonly [bigint, bigint]>> = {
  32: [-(2n ** 31n), 2n ** 31n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  64: [-(2n ** 63n), 2n ** 63n - 1n],
  u64: [0n, 2n ** 64n - 1n],
};

function checkInteger(value: unknown, source: string, type: string): Checked {
  const bits = type.endsWith("64") ? "64" : "32";
  const [least, most] = RANGES[/^(u|fixed)/.test(type) ? `u${bits}` : bits] ?? [0n, 0n];
  const integer = toInteger(value, source);
  if (integer === undefined)
    return bad(`must be a whole number${typeof value === "string" ? `, not "${value}"` : ""}`);
  if (integer < least || integer > most) return bad(`must be from ${least} to ${most}`);
  return good(bits === "64" ? String(integer) : Number(integer));
}

/** Converts a value to an integer. Prefers its source text, because a double is exact only up to 53 bits. */
function toInteger(value: unknown, source: string): bigint | undefined {
  const text = typeof value === "string" ? value : source;
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  if (/^-?\d+$/.test(text)) return BigInt(text);
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

function checkNumber(value: unknown): Checked {
  if (typeof value === "number") return good(value);
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
  return Number.isNaN(number) ? bad("must be a number") : good(number);
}

function checkBytes(value: unknown): Checked {
  const plain =
    typeof value === "string"
      ? value.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "")
      : undefined;
  // Text that is the same after decoding and encoding has neither foreign characters nor unused bits set.
  if (plain === undefined || Buffer.from(plain, "base64").toString("base64").replace(/=+$/, "") !== plain) {
    return bad("must be base64 text");
  }
  return good(plain);
}

function checkEnum(value: unknown, field: FieldSchema, suggest: Suggest): Checked {
  if (typeof value === "string" && field.values.includes(value)) return good(value);
  const shown = typeof value === "string" ? `, not "${value}"${suggest(value, field.values)}` : "";
  return bad(`must be ${describe(field)}${shown}`);
}

function checkDuration(value: unknown): Checked {
  if (typeof value === "string" && parseDuration(value) !== undefined) return good(value);
  if (typeof value === "number") return bad(`must be a duration: for seconds write "${value}s"`);
  return bad(
    `must be a duration in seconds such as "30s" or "1.5s"${typeof value === "string" ? `, not "${value}"` : ""}`,
  );
}

function good(value: unknown): Checked {
  return { ok: true, value };
}

function bad(message: string): Checked {
  return { ok: false, message };
}
