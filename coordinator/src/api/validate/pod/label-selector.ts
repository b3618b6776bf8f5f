import type { LabelSelector } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { validateLabels } from "../labels.ts";
import { labelKeyProblem, labelValueProblem } from "../syntax/names.ts";
import { requiredChoiceProblem } from "../syntax/text.ts";

/** The limit of requirements, because each is compared with the labels of every node or pod. */
const MAX_REQUIREMENTS = 64;
const MAX_VALUES = 256;

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

/** Checks the number of values: In and NotIn need some, Exists and DoesNotExist none. */
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
  if (requirements.length > MAX_REQUIREMENTS) field.invalid(`must be at most ${MAX_REQUIREMENTS}`);
  for (const [index, { values }] of requirements.entries())
    if (values.length > MAX_VALUES) field.item(index).at("values").invalid(`must be at most ${MAX_VALUES}`);
}
