import type { NodeSelectorRequirement, NodeSelectorTerm } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { dnsSubdomainProblem, labelKeyProblem, labelValueProblem } from "../syntax/names.ts";
import { requiredChoiceProblem } from "../syntax/text.ts";
import { checkCounts, checkValueCount } from "./label-selector.ts";

const OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const MAX_INT64 = 2n ** 63n - 1n;

export function validateNodeSelectorTerm(
  { matchExpressions, matchFields }: NodeSelectorTerm,
  field: Field,
): void {
  checkCounts(matchExpressions, field.at("match_expressions"));
  checkCounts(matchFields, field.at("match_fields"));
  for (const [index, requirement] of matchExpressions.entries())
    validateExpression(requirement, field.at("match_expressions").item(index));
  for (const [index, requirement] of matchFields.entries())
    validateField(requirement, field.at("match_fields").item(index));
}

function validateExpression({ key, operator, values }: NodeSelectorRequirement, field: Field): void {
  field.at("key").check(labelKeyProblem(key));
  field.at("operator").check(requiredChoiceProblem(operator, OPERATORS));
  if (operator === "Gt" || operator === "Lt") {
    if (values.length !== 1) field.at("values").invalid(`must be one number for ${operator}`);
  } else checkValueCount(operator, values, field.at("values"));
  for (const [index, value] of values.entries()) {
    const at = field.at("values").item(index);
    const number = operator === "Gt" || operator === "Lt";
    at.check(labelValueProblem(value) ?? (number ? integerProblem(value) : undefined));
  }
}

/** Validates a selector of a node's fields. The name is the only selectable field. */
function validateField({ key, operator, values }: NodeSelectorRequirement, field: Field): void {
  if (key !== "metadata.name") field.at("key").invalid("must be metadata.name");
  field.at("operator").check(requiredChoiceProblem(operator, ["In", "NotIn"]));
  if (values.length !== 1) field.at("values").invalid("must be the name of one node");
  for (const [index, value] of values.entries())
    field.at("values").item(index).check(dnsSubdomainProblem(value));
}

/** Validates a number. Labels can't contain a sign, so numbers are never negative. */
function integerProblem(text: string): string | undefined {
  const value = /^\d{1,19}$/.test(text) ? BigInt(text) : undefined;
  return value !== undefined && value <= MAX_INT64 ? undefined : "must be a whole number";
}
