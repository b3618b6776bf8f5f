import { type FieldSchema, forestSchema } from "@forage/proto/forest-schema";
import type { Field } from "./field.ts";
import { setValueOf } from "./set-value.ts";
import { supportOf } from "./supported.ts";

/** Reports each field of the message, however deep, that is set to something this version does not act on. */
export function findUnsupported(
  message: object,
  type: string,
  field: Field,
  support: typeof supportOf = supportOf,
): void {
  for (const schema of forestSchema[type]?.fields ?? []) {
    const value = setValueOf(message, schema);
    if (value === undefined) continue;
    const at = field.at(schema.name);
    const given = support(type, schema.name);
    if (given === undefined) at.unimplemented("is not supported by this version");
    else if (given !== "all" && !given.includes(String(value)))
      at.unimplemented(
        `${shown(value)} is not supported by this version; ${given.join(", ")} ${given.length === 1 ? "is" : "are"}`,
      );
    else if (schema.kind === "message") descend(value, schema, at, support);
  }
}

function descend(value: unknown, { type }: FieldSchema, field: Field, support: typeof supportOf): void {
  if (!Array.isArray(value)) {
    findUnsupported(value as object, type, field, support);
    return;
  }
  for (const [index, item] of value.entries())
    findUnsupported(item as object, type, field.item(index), support);
}

function shown(value: unknown): string {
  return String(value).slice(0, 40).toWellFormed();
}
