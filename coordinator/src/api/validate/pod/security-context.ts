import type {
  Capabilities,
  ContainerSecurityContext,
  PodSecurityContext,
} from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { capabilityProblem } from "../syntax/capability.ts";
import { idProblem } from "../syntax/numbers.ts";
import { absolutePathProblem, relativePathProblem } from "../syntax/paths.ts";
import { choiceProblem } from "../syntax/text.ts";

/** The limit of groups. The kernel's NGROUPS_MAX is 65,536, but longer lists are probably mistakes. */
const MAX_GROUPS = 256;

export function validateContainerSecurity(context: ContainerSecurityContext, field: Field): void {
  field.at("run_as_user").check(idProblem(context.runAsUser));
  field.at("run_as_group").check(idProblem(context.runAsGroup));
  if (context.capabilities !== undefined)
    validateCapabilities(context.capabilities, field.at("capabilities"));
  field.at("se_linux_type").check(seLinuxTypeProblem(context.seLinuxType));
  field.at("seccomp_profile").check(seccompProblem(context.seccompProfile));
}

export function validatePodSecurity(context: PodSecurityContext, field: Field): void {
  field.at("run_as_user").check(idProblem(context.runAsUser));
  field.at("run_as_group").check(idProblem(context.runAsGroup));
  field.at("fs_group").check(idProblem(context.fsGroup));
  const groups = field.at("supplemental_groups");
  if (context.supplementalGroups.length > MAX_GROUPS) groups.invalid(`must be at most ${MAX_GROUPS}`);
  for (const [index, group] of context.supplementalGroups.entries())
    groups.item(index).check(idProblem(group));
  field
    .at("fs_group_change_policy")
    .check(choiceProblem(context.fsGroupChangePolicy, ["OnRootMismatch", "Always"]));
  field.at("seccomp_profile").check(seccompProblem(context.seccompProfile));
}

function validateCapabilities({ add, drop }: Capabilities, field: Field): void {
  for (const [index, name] of add.entries()) field.at("add").item(index).check(capabilityProblem(name));
  for (const [index, name] of drop.entries()) {
    const at = field.at("drop").item(index);
    at.check(capabilityProblem(name));
    if (name !== "ALL" && add.includes(name)) at.invalid("is added, too");
  }
}

function seLinuxTypeProblem(type: string): string | undefined {
  const valid = type === "" || (type.length <= 128 && /^[a-z][a-z0-9_]*$/.test(type));
  return valid ? undefined : "must be a type such as container_t";
}

/**
 * Returns what is wrong with a profile. A word without a dot or slash must be one of the two names, because a misspelt name
 * would otherwise count as the name of a file.
 */
function seccompProblem(profile: string): string | undefined {
  const words = ["RuntimeDefault", "Unconfined"];
  if (!/[./]/.test(profile)) {
    const problem = choiceProblem(profile, words);
    return problem?.startsWith("must be written")
      ? problem
      : problem && `${problem}, or the path of a profile`;
  }
  return profile.startsWith("/") ? absolutePathProblem(profile) : relativePathProblem(profile);
}
