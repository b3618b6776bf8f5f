import type { Taint, UpdateNodeRequest } from "@forage/proto/forage/operator/v1/operator";
import { taintEffects } from "../../model/pod-rules.ts";
import { hostnameLabel } from "../../state/node-labels.ts";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";
import { validateLabels } from "./labels.ts";
import { labelKeyProblem, labelValueProblem } from "./syntax/names.ts";
import { choiceProblem, requiredChoiceProblem } from "./syntax/text.ts";

/** Each is compared with each toleration of each pod. */
const maxTaints = 64;
const maxRemovedLabels = 64;

export function validateUpdateNode(update: UpdateNodeRequest): void {
  const { name, setTaints, removeTaints, setLabels, removeLabels } = update;
  const findings = new Findings();
  const request = new Field(findings);
  if (name === "") request.at("name").invalid("must not be empty");
  validateTaints(setTaints, request.at("set_taints"));
  for (const [index, { effect }] of setTaints.entries())
    request.at("set_taints").item(index).at("effect").check(requiredChoiceProblem(effect, taintEffects));
  validateTaints(removeTaints, request.at("remove_taints"));
  for (const [index, { effect }] of removeTaints.entries())
    request.at("remove_taints").item(index).at("effect").check(choiceProblem(effect, taintEffects));
  validateLabels(setLabels, request.at("set_labels"));
  for (const key of [hostnameLabel, "hostname"]) {
    if (Object.hasOwn(setLabels, key) && setLabels[key] !== name)
      request.at("set_labels").key(key).invalid("is always the node's name, which its certificate proves");
  }
  if (removeLabels.length > maxRemovedLabels)
    request.at("remove_labels").invalid(`must be at most ${maxRemovedLabels}`);
  for (const [index, key] of removeLabels.entries()) {
    const at = request.at("remove_labels").item(index);
    at.check(labelKeyProblem(key));
    if (Object.hasOwn(setLabels, key)) at.invalid("is set by the same request");
  }
  findings.raise();
}

function validateTaints(taints: readonly Taint[], field: Field): void {
  if (taints.length > maxTaints) field.invalid(`must be at most ${maxTaints}`);
  const seen = new Set<string>();
  for (const [index, { key, value, effect }] of taints.entries()) {
    const at = field.item(index);
    at.at("key").check(labelKeyProblem(key));
    at.at("value").check(labelValueProblem(value));
    if (seen.has(`${key} ${effect}`)) at.invalid("has the key and effect of another");
    seen.add(`${key} ${effect}`);
  }
}
