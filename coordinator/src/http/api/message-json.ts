import { parseDuration } from "@forage/proto/duration-json";
import { type FieldSchema, forestSchema, type MessageSchema } from "@forage/proto/forest-schema";
import { CoordinatorError, type FieldViolation } from "../../errors.ts";

/** Deeper than any message of the contract. */
const maxDepth = 64;
/** More are no help. */
const maxViolations = 50;

/**
 * A message of the public contract in proto-JSON form, as `fromJSON` of its type reads it without leaving anything out: names in
 * either spelling become camelCase. Throws INVALID with each unknown field and each value of the wrong type by its path.
 */
export function messageJson(body: unknown, type: string): object {
  const violations: FieldViolation[] = [];
  const message = readMessage(body, type, "", violations, 0);
  if (violations.length === 0) return message;
  const shown = violations.slice(0, maxViolations);
  const said = shown.slice(0, 5).map(({ field, description }) => `${field || "the body"}: ${description}`);
  throw new CoordinatorError("INVALID", `the body is invalid: ${said.join("; ")}`, { violations: shown });
}

function readMessage(
  value: unknown,
  type: string,
  path: string,
  found: FieldViolation[],
  depth: number,
): object {
  const fail = (field: string, description: string): void => void found.push({ field, description });
  const schema = forestSchema[type];
  if (!isObject(value) || schema === undefined || depth > maxDepth) {
    fail(path, depth > maxDepth ? "is nested too deeply" : "must be an object");
    return {};
  }
  const message: Record<string, unknown> = {};
  const oneofs = new Map<string, string>();
  for (const [key, item] of Object.entries(value)) {
    const field = fieldOf(schema, key);
    const at = path === "" ? key : `${path}.${key}`;
    if (field === undefined) fail(at.slice(0, 200), "is unknown");
    else if (Object.hasOwn(message, field.jsonName)) fail(at, "stands there twice");
    else if (field.oneof !== undefined && oneofs.has(field.oneof))
      fail(at, `contradicts ${oneofs.get(field.oneof)}`);
    else if (item !== null) {
      if (field.oneof !== undefined) oneofs.set(field.oneof, key);
      message[field.jsonName] = readField(item, field, at, found, depth);
    }
  }
  return message;
}

function readField(
  value: unknown,
  field: FieldSchema,
  path: string,
  found: FieldViolation[],
  depth: number,
): unknown {
  const one = (item: unknown, at: string): unknown => {
    if (field.kind === "message") return readMessage(item, field.type, at, found, depth + 1);
    const wrong = problemOf(item, field);
    if (wrong !== undefined) found.push({ field: at, description: wrong });
    return item;
  };
  if (field.map) {
    if (isObject(value))
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, one(item, `${path}[${key.slice(0, 100)}]`)]),
      );
  } else if (!field.repeated) return one(value, path);
  else if (Array.isArray(value)) return value.map((item, index) => one(item, `${path}[${index}]`));
  found.push({ field: path, description: field.map ? "must be an object" : "must be a list" });
  return undefined;
}

function problemOf(value: unknown, { kind, type, values }: FieldSchema): string | undefined {
  if (kind === "enum")
    return values.includes(String(value)) ? undefined : `must be one of ${values.join(", ")}`;
  if (kind === "duration")
    return typeof value === "string" && parseDuration(value) !== undefined
      ? undefined
      : 'must be a duration such as "30s"';
  if (type === "string" || type === "bytes") return typeof value === "string" ? undefined : "must be text";
  if (type === "bool") return typeof value === "boolean" ? undefined : "must be true or false";
  if (type === "double" || type === "float")
    return typeof value === "number" ? undefined : "must be a number";
  const text = typeof value === "number" || typeof value === "string" ? String(value) : "";
  if (!/^-?\d{1,19}$/.test(text)) return "must be a whole number";
  const least = type.startsWith("u") || type.startsWith("fixed") ? 0 : -(2 ** 31);
  const most = type.endsWith("64") ? 2 ** 63 : type.startsWith("u") ? 2 ** 32 - 1 : 2 ** 31 - 1;
  const low = type.endsWith("64") && least < 0 ? -(2 ** 63) : least;
  return Number(text) < low || Number(text) > most ? "is out of range" : undefined;
}

function fieldOf({ fields }: MessageSchema, key: string): FieldSchema | undefined {
  return fields.find(({ name, jsonName }) => name === key || jsonName === key);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
