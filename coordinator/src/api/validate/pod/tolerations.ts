import type { Toleration } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { labelKeyProblem, labelValueProblem } from "../syntax/names.ts";
import { choiceProblem } from "../syntax/text.ts";

const MAX_TOLERATIONS = 64;
const MAX_SECONDS = 2_147_483_647n;

export function validateTolerations(tolerations: readonly Toleration[], field: Field): void {
  if (tolerations.length > MAX_TOLERATIONS) field.invalid(`must be at most ${MAX_TOLERATIONS}`);
  for (const [index, toleration] of tolerations.entries()) validateToleration(toleration, field.item(index));
}

function validateToleration(toleration: Toleration, field: Field): void {
  const { key, operator, value, effect, tolerationSeconds } = toleration;
  field.at("operator").check(choiceProblem(operator, ["Equal", "Exists"]));
  field.at("effect").check(choiceProblem(effect, ["NoSchedule", "PreferNoSchedule", "NoExecute"]));
  if (key !== "") field.at("key").check(labelKeyProblem(key));
  else if (operator !== "Exists")
    field
      .at("key")
      .invalid("must not be empty, unless the operator is Exists, which then tolerates everything");
  if (operator === "Exists" && value !== "")
    field.at("value").invalid("must be empty when the operator is Exists");
  else field.at("value").check(labelValueProblem(value));
  if (tolerationSeconds !== 0n && effect !== "NoExecute")
    field.at("toleration_seconds").invalid("is only for the effect NoExecute");
  // Negative values mean "at once", because 0 is the same as no value.
  if (tolerationSeconds > MAX_SECONDS || tolerationSeconds < -MAX_SECONDS)
    field.at("toleration_seconds").invalid(`must be at most ${MAX_SECONDS}`);
}
