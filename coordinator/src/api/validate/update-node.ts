import type { Taint, UpdateNodeRequest } from "@forage/proto/forage/operator/v1/operator";
import { TAINT_EFFECTS } from "../../model/pod-rules.ts";
import { HOSTNAME_LABEL } from "../../state/node-labels.ts";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";
import { validateLabels } from "./labels.ts";
import { labelKeyProblem, labelValueProblem } from "./syntax/names.ts";
import { choiceProblem, requiredChoiceProblem } from "./syntax/text.ts";

/** The limit of taints, because each is compared with each toleration of each pod. */
const MAX_TAINTS = 64;
const MAX_REMOVED_LABELS = 64;

export function validateUpdateNode(update: UpdateNodeRequest): void {
  const { name, setTaints, removeTaints, setLabels, removeLabels } = update;
  const findings = new Findings();
  const request = new Field(findings);
  if (name === "") request.at("name").invalid("must not be empty");
  validateNewTaints(setTaints, request.at("set_taints"));
  validateTaints(removeTaints, request.at("remove_taints"));
  for (const [index, { effect }] of removeTaints.entries())
    request.at("remove_taints").item(index).at("effect").check(choiceProblem(effect, TAINT_EFFECTS));
  validateLabels(setLabels, request.at("set_labels"));
  for (const key of [HOSTNAME_LABEL, "hostname"]) {
    if (Object.hasOwn(setLabels, key) && setLabels[key] !== name)
      request.at("set_labels").key(key).invalid("is always the node's name, which its certificate proves");
  }
  if (removeLabels.length > MAX_REMOVED_LABELS)
    request.at("remove_labels").invalid(`must be at most ${MAX_REMOVED_LABELS}`);
  for (const [index, key] of removeLabels.entries()) {
    const at = request.at("remove_labels").item(index);
    at.check(labelKeyProblem(key));
    if (Object.hasOwn(setLabels, key)) at.invalid("is set by the same request");
  }
  findings.raise();
}

/** Validates taints that are added to a node. */
export function validateNewTaints(taints: readonly Taint[], field: Field): void {
  validateTaints(taints, field);
  for (const [index, { effect }] of taints.entries())
    field.item(index).at("effect").check(requiredChoiceProblem(effect, TAINT_EFFECTS));
}

function validateTaints(taints: readonly Taint[], field: Field): void {
  if (taints.length > MAX_TAINTS) field.invalid(`must be at most ${MAX_TAINTS}`);
  const seen = new Set<string>();
  for (const [index, { key, value, effect }] of taints.entries()) {
    const at = field.item(index);
    at.at("key").check(labelKeyProblem(key));
    at.at("value").check(labelValueProblem(value));
    if (seen.has(`${key} ${effect}`)) at.invalid("has the key and effect of another");
    seen.add(`${key} ${effect}`);
  }
}
