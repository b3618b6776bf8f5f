import type { ContainerServiceSpec } from "@forage/proto/forest/v1/forage";
import { ROLLOUT_ANNOTATIONS, settingProblem } from "../../../model/rollout-settings.ts";
import type { Field } from "../field.ts";
import { checkOwnAnnotations } from "../pod/own-annotations.ts";
import { validatePod } from "../pod/pod.ts";
import { validateAutoscaled } from "./autoscaling.ts";
import { validateScaling } from "./scaling.ts";
import { validateUpdateStrategy } from "./update-strategy.ts";

export function validateContainerService(spec: ContainerServiceSpec, field: Field): void {
  validatePod(spec, field);
  if (spec.scaling !== undefined) validateScaling(spec.scaling, field.at("scaling"));
  validateAutoscaled(spec, field);
  if (spec.updateStrategy !== undefined)
    validateUpdateStrategy(spec.updateStrategy, field.at("update_strategy"));
  validateSettings(spec, field.at("pod_config").at("annotations"));
}

function validateSettings({ podConfig, updateStrategy }: ContainerServiceSpec, field: Field): void {
  const annotations = podConfig?.annotations ?? {};
  checkOwnAnnotations(annotations, "service", field);
  for (const [name, value] of Object.entries(annotations)) field.key(name).check(settingProblem(name, value));
  if (updateStrategy?.type === "Recreate" && Object.hasOwn(annotations, ROLLOUT_ANNOTATIONS.canary))
    field.key(ROLLOUT_ANNOTATIONS.canary).invalid("must not be set when the update_strategy is Recreate");
}
