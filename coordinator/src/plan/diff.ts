import type { FieldChange } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { type FieldSchema, forestSchema } from "@forage/proto/forest-schema";
import type { Labels } from "../model/labels.ts";
import { setValueOf } from "./set-value.ts";

/** The length limit of values. Longer ones are shortened; readers find them in the manifest. */
const MAX_VALUE_LENGTH = 200;
const RESOURCE_TYPE = "forest.v1.ForageResource";

export interface Content {
  readonly resource: ForageResource | undefined;
  /** The labels of the request. */
  readonly labels: Labels;
}

/**
 * Returns the differences field by field, with the field names of the contract. Items of lists are
 * matched by name if they have names. Resources contain no secrets, only their names.
 */
export function changedFields(before: Content | undefined, after: Content | undefined): FieldChange[] {
  const old = before === undefined ? new Map<string, string>() : flatten(before);
  const now = after === undefined ? new Map<string, string>() : flatten(after);
  const paths = [...new Set([...old.keys(), ...now.keys()])];
  return paths.flatMap((path) => {
    const [from, to] = [old.get(path), now.get(path)];
    return from === to ? [] : [{ path, before: cut(from), after: cut(to) }];
  });
}

function flatten({ resource, labels }: Content): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(labels)) found.set(`labels[${key}]`, value);
  if (resource !== undefined) walk(resource, RESOURCE_TYPE, "", found);
  found.delete("name");
  return found;
}

function walk(message: object, type: string, path: string, found: Map<string, string>): void {
  for (const schema of forestSchema[type]?.fields ?? []) {
    const value = setValueOf(message, schema);
    if (value === undefined) continue;
    const at = path === "" ? schema.name : `${path}.${schema.name}`;
    if (schema.map)
      for (const [key, item] of Object.entries(value as object)) found.set(`${at}[${key}]`, String(item));
    else if (Array.isArray(value)) walkList(value, schema, at, found);
    else walkValue(value, schema, at, found);
  }
}

function walkList(
  items: readonly unknown[],
  schema: FieldSchema,
  path: string,
  found: Map<string, string>,
): void {
  const names = items.map(nameOf);
  const named = names.every((name) => name !== undefined) && new Set(names).size === names.length;
  for (const [index, item] of items.entries())
    walkValue(item, schema, `${path}[${named ? names[index] : index}]`, found);
}

function walkValue(
  value: unknown,
  { kind, type }: FieldSchema,
  path: string,
  found: Map<string, string>,
): void {
  if (kind !== "message" || typeof value !== "object" || value === null) found.set(path, String(value));
  else if (forestSchema[type] === undefined) found.set(path, JSON.stringify(value, plain));
  else {
    const before = found.size;
    walk(value, type, path, found);
    // The presence of an empty message is meaningful, as for an emptyDir or a strategy.
    if (found.size === before) found.set(path, "{}");
  }
}

function nameOf(item: unknown): string | undefined {
  const named = item as { readonly name?: unknown } | undefined;
  return typeof named?.name === "string" && named.name !== "" ? named.name : undefined;
}

function plain(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}

function cut(text: string | undefined): string | undefined {
  return text !== undefined && text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
}
