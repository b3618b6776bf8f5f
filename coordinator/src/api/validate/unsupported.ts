import { type FieldSchema, forestSchema } from "@forage/proto/forest-schema";
import type { Field } from "./field.ts";
import { setValueOf } from "./set-value.ts";
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
      at.unimplemented(
        `${shown(value)} is not supported by this version; ${support.join(", ")} ${support.length === 1 ? "is" : "are"}`,
      );
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

function shown(value: unknown): string {
  return String(value).slice(0, 40).toWellFormed();
}
