import type { ApplyResourcesRequest, ForageResource, PodConfig } from "@forage/proto/forest/v1/forage";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";

/**
 * Checks that priority classes exist, because pods can't wait for their creation. @throws CoordinatorError INVALID with
 * every missing class.
 */
export function checkPriorityClasses(
  { resources }: ApplyResourcesRequest,
  exists: (name: string) => boolean,
): void {
  const findings = new Findings();
  const root = new Field(findings).at("resources");
  for (const [index, resource] of resources.entries()) {
    const found = podConfigOf(resource, root.item(index));
    const name = found?.config.priorityClassName ?? "";
    if (found === undefined || name === "" || exists(name)) continue;
    found.field
      .at("priority_class_name")
      .invalid(`there is no priority class "${name}": create it first, or leave this empty`);
  }
  findings.raise();
}

function podConfigOf(
  { spec }: ForageResource,
  field: Field,
): { readonly config: PodConfig; readonly field: Field } | undefined {
  switch (spec?.$case) {
    case "containerService":
      return located(spec.value.podConfig, field.at("container_service"));
    case "job":
      return located(spec.value.podConfig, field.at("job"));
    case "cronJob":
      return located(spec.value.podConfig, field.at("cron_job"));
    default:
      return undefined;
  }
}

function located(config: PodConfig | undefined, field: Field) {
  return config === undefined ? undefined : { config, field: field.at("pod_config") };
}
