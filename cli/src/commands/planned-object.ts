import { FieldChange } from "@forage/proto/forage/operator/v1/operator";
import type { Context } from "../context.ts";
import { plainText } from "../output/plain-text.ts";
import { changeLines } from "../view/difference.ts";
import { type PlannedObject, titleOf } from "./put-objects.ts";

/** Describes how a put would change an object, without values of secrets. */
export function describeObjectChange(
  { object, action, changes }: PlannedObject,
  { format, paint }: Pick<Context, "format" | "paint">,
): string {
  const title = plainText(titleOf(object));
  if (format === "name") return `${title.replace(/^\S+ /, "")}\n`;
  const lines = changes.flatMap((change) => changeLines(change, paint));
  return [paint("strong", `${title} ${action}`), ...lines].map((line) => `${line}\n`).join("");
}

export function plannedObjectJson({ object, action, changes }: PlannedObject): object {
  const { namespace, name, spec } = object;
  return {
    ...(namespace !== "" && { namespace }),
    object: { kind: spec?.$case, name, action, changes: changes.map((each) => FieldChange.toJSON(each)) },
  };
}
