import type { ContainerServiceSpec } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { validatePod } from "../pod/pod.ts";
import { validateScaling } from "./scaling.ts";
import { validateUpdateStrategy } from "./update-strategy.ts";

export function validateContainerService(spec: ContainerServiceSpec, field: Field): void {
  validatePod(spec, field);
  if (spec.scaling !== undefined) validateScaling(spec.scaling, field.at("scaling"));
  if (spec.updateStrategy !== undefined)
    validateUpdateStrategy(spec.updateStrategy, field.at("update_strategy"));
}
