import type { TopologySpreadConstraint } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { labelKeyProblem } from "../syntax/names.ts";
import { requiredChoiceProblem } from "../syntax/text.ts";
import { validateLabelSelector } from "./label-selector.ts";

/** The limit of constraints, because each is evaluated over all nodes. */
const MAX_CONSTRAINTS = 16;

export function validateTopologySpread(constraints: readonly TopologySpreadConstraint[], field: Field): void {
  if (constraints.length > MAX_CONSTRAINTS) field.invalid(`must be at most ${MAX_CONSTRAINTS}`);
  const seen = new Set<string>();
  for (const [index, constraint] of constraints.entries()) {
    const { maxSkew, topologyKey, whenUnsatisfiable, labelSelector } = constraint;
    const at = field.item(index);
    if (maxSkew < 1) at.at("max_skew").invalid("must be at least 1");
    at.at("topology_key").check(topologyKeyProblem(topologyKey));
    const choices = ["DoNotSchedule", "ScheduleAnyway"];
    at.at("when_unsatisfiable").check(requiredChoiceProblem(whenUnsatisfiable, choices));
    if (labelSelector !== undefined) validateLabelSelector(labelSelector, at.at("label_selector"));
    const pair = `${topologyKey} ${whenUnsatisfiable}`;
    if (seen.has(pair)) at.invalid("is for the same topology key and case as another");
    seen.add(pair);
  }
}

/** Validates a topology key: the key of a node label, or `zone` or `hostname` for the usual ones. */
export function topologyKeyProblem(key: string): string | undefined {
  return key === "" ? "must not be empty" : labelKeyProblem(key);
}
