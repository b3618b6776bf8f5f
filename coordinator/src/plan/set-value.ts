import type { FieldSchema } from "@forage/proto/forest-schema";

/**
 * Returns the value of a field; undefined if it has the default of proto3 and so counts as unset.
 */
export function setValueOf(message: object, field: FieldSchema): unknown {
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

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
