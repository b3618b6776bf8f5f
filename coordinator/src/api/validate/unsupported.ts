import { type FieldSchema, forestSchema } from "@forage/proto/forest-schema";
import type { Field } from "./field.ts";
import { supportOf } from "./supported.ts";

/** Reports each field of the message, however deep, that is set to something this version does not act on. */
export function findUnsupported(message: object, type: string, field: Field): void {
  for (const schema of forestSchema[type]?.fields ?? []) {
    const value = setValueOf(message, schema);
    if (value === undefined) continue;
    const at = field.at(schema.name);
    const support = supportOf(type, schema.name);
    if (support === undefined) at.unimplemented("is not supported by this version");
    else if (support !== "all" && !support.includes(String(value)))
      at.unimplemented(`${shown(value)} is not supported by this version; ${support.join(", ")} is`);
    else if (schema.kind === "message") descend(value, schema, at);
  }
}

function descend(value: unknown, { type }: FieldSchema, field: Field): void {
  if (!Array.isArray(value)) {
    findUnsupported(value as object, type, field);
    return;
  }
  for (const [index, item] of value.entries()) findUnsupported(item as object, type, field.item(index));
}

/** The field's value, or undefined where it has proto3's default and so says nothing. */
function setValueOf(message: object, field: FieldSchema): unknown {
  const record = message as Readonly<Record<string, unknown>>;
  if (field.oneof !== undefined) {
    const chosen = record[camelCase(field.oneof)] as
      | { readonly $case: string; readonly value: unknown }
      | undefined;
    return chosen?.$case === field.jsonName ? chosen.value : undefined;
  }
  const value = record[field.jsonName];
  return isDefault(value, field.map) ? undefined : value;
}

function isDefault(value: unknown, map: boolean): boolean {
  if (value === undefined || value === "" || value === 0 || value === 0n || value === false) return true;
  if (map) return Object.keys(value as object).length === 0;
  return Array.isArray(value) && value.length === 0;
}

function shown(value: unknown): string {
  return String(value).slice(0, 40).toWellFormed();
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
