import type { FieldChange, PlannedResource } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { writeResource } from "../manifest/write-manifest.ts";
import { renderDocument } from "../output/document.ts";
import type { Paint } from "../output/paint.ts";
import { plainText } from "../output/plain-text.ts";

/**
 * Describes one resource that an apply would change, create or remove. `desired` is the resource in
 * the manifest.
 */
export function describeDifference(
  namespace: string,
  { kind, name, action, changes }: PlannedResource,
  desired: ForageResource | undefined,
  paint: Paint,
): string {
  const title = paint("strong", plainText(`${namespace} ${kind}/${name} ${action}`));
  return [title, ...linesOf(action, changes, desired, paint)].map((line) => `${line}\n`).join("");
}

function linesOf(
  action: string,
  changes: readonly FieldChange[],
  desired: ForageResource | undefined,
  paint: Paint,
): string[] {
  if (action !== "create" || desired === undefined)
    return changes.flatMap((each) => changeLines(each, paint));
  const { name: _name, ...spec } = writeResource(desired);
  return renderDocument("yaml", spec)
    .trimEnd()
    .split("\n")
    .map((line) => paint("good", plainText(`+ ${line}`)));
}

/** Describes the change of one field: the deployed value, and the value in the manifests. */
export function changeLines({ path, before, after }: FieldChange, paint: Paint): string[] {
  return [
    ...(before === undefined ? [] : [paint("bad", plainText(`- ${path}: ${JSON.stringify(before)}`))]),
    ...(after === undefined ? [] : [paint("good", plainText(`+ ${path}: ${JSON.stringify(after)}`))]),
  ];
}
