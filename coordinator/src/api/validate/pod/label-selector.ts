import type { LabelSelector } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { validateLabels } from "../labels.ts";
import { labelKeyProblem, labelValueProblem } from "../syntax/names.ts";
import { requiredChoiceProblem } from "../syntax/text.ts";

/** Every one is compared with the labels of every node or pod. */
const maxRequirements = 64;
const maxValues = 256;

export function validateLabelSelector({ matchLabels, matchExpressions }: LabelSelector, field: Field): void {
  validateLabels(matchLabels, field.at("match_labels"));
  const expressions = field.at("match_expressions");
  checkCounts(matchExpressions, expressions);
  for (const [index, { key, operator, values }] of matchExpressions.entries()) {
    const at = expressions.item(index);
    at.at("key").check(labelKeyProblem(key));
    at.at("operator").check(requiredChoiceProblem(operator, ["In", "NotIn", "Exists", "DoesNotExist"]));
    checkValueCount(operator, values, at.at("values"));
    for (const [position, value] of values.entries())
      at.at("values").item(position).check(labelValueProblem(value));
  }
}

/** In and NotIn compare with something, Exists and DoesNotExist with nothing. */
export function checkValueCount(operator: string, values: readonly string[], field: Field): void {
  const compares = operator === "In" || operator === "NotIn";
  if (compares && values.length === 0) field.invalid(`must not be empty for ${operator}`);
  const mustBeEmpty = operator === "Exists" || operator === "DoesNotExist";
  if (mustBeEmpty && values.length > 0) field.invalid(`must be empty for ${operator}`);
}

export function checkCounts(
  requirements: readonly { readonly values: readonly string[] }[],
  field: Field,
): void {
  if (requirements.length > maxRequirements) field.invalid(`must be at most ${maxRequirements}`);
  for (const [index, { values }] of requirements.entries())
    if (values.length > maxValues) field.item(index).at("values").invalid(`must be at most ${maxValues}`);
}
