import { type FieldSchema, forestSchema } from "@forage/proto/forest-schema";

/** A message under construction. */
export type Draft = Record<string, unknown>;

export function fieldsOf(type: string): readonly FieldSchema[] {
  const schema = forestSchema[type];
  if (schema === undefined) throw new Error(`there is no message ${type}`);
  return schema.fields;
}

/** Returns the field's value in ts-proto's form; undefined if it is unset. */
export function getField(message: Draft, field: FieldSchema): unknown {
  if (field.oneof === undefined) return message[field.jsonName];
  const chosen = message[camelCase(field.oneof)] as { $case: string; value: unknown } | undefined;
  return chosen?.$case === field.jsonName ? chosen.value : undefined;
}

export function setField(message: Draft, field: FieldSchema, value: unknown): void {
  if (field.oneof === undefined) message[field.jsonName] = value;
  else message[camelCase(field.oneof)] = { $case: field.jsonName, value };
}

/**
 * Reports whether a path such as `resources[0].service.annotations[a.b/c]` refers to a field of a
 * request.
 */
export function isFieldPath(path: string, type = "forest.v1.ApplyResourcesRequest"): boolean {
  const match = /^([a-z0-9_]+)(\[.*)?$/s.exec(path.split(".")[0] ?? "") ?? [];
  const field = fieldsOf(type).find(({ name }) => name === match[1]);
  if (field === undefined) return false;
  const rest = path.slice(field.name.length);
  if (rest === "") return true;
  // Keys of maps are arbitrary texts, and have no fields.
  if (field.map) return /^\[.*\]$/s.test(rest);
  const index = field.repeated ? /^\[\d+\]/.exec(rest)?.[0] : "";
  if (index === undefined) return false;
  const below = rest.slice(index.length);
  if (below === "") return true;
  return field.kind === "message" && below.startsWith(".") && isFieldPath(below.slice(1), field.type);
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
