import type { Container } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { imageProblem } from "../syntax/image.ts";
import { dnsLabelProblem } from "../syntax/names.ts";
import { absolutePathProblem } from "../syntax/paths.ts";
import { choiceProblem } from "../syntax/text.ts";
import { validateArguments } from "./arguments.ts";
import { validateEnv } from "./env.ts";
import { validateLifecycle } from "./lifecycle.ts";
import { validatePorts } from "./ports.ts";
import { validateProbe } from "./probe.ts";
import { validateResources } from "./resources.ts";
import { validateContainerSecurity } from "./security-context.ts";
import { validateMount } from "./volume-mount.ts";

/** The role of a container in its pod. */
export type ContainerRole = "main" | "sidecar" | "init";

const PROBES = [
  ["livenessProbe", "liveness_probe", "liveness"],
  ["readinessProbe", "readiness_probe", "readiness"],
  ["startupProbe", "startup_probe", "startup"],
] as const;

export function validateContainer(container: Container, role: ContainerRole, field: Field): void {
  field.at("name").check(dnsLabelProblem(container.name));
  field.at("image").check(imageProblem(container.image));
  if (container.workingDir !== "") field.at("working_dir").check(absolutePathProblem(container.workingDir));
  field
    .at("image_pull_policy")
    .check(choiceProblem(container.imagePullPolicy, ["Always", "IfNotPresent", "Never"]));
  validateArguments(container, field);
  validateEnv(container.env, field.at("env"));
  validatePorts(container.ports, field.at("ports"));
  if (container.resources !== undefined) validateResources(container.resources, field.at("resources"));
  for (const [index, mount] of container.volumeMounts.entries())
    validateMount(mount, field.at("volume_mounts").item(index));
  if (container.securityContext !== undefined)
    validateContainerSecurity(container.securityContext, field.at("security_context"));
  validateSupervision(container, role, field);
}

/** Validates probes and hooks, which init containers must not have. */
function validateSupervision(container: Container, role: ContainerRole, field: Field): void {
  const forbidden = "must not be set on an init container, which runs to its end";
  for (const [property, name, kind] of PROBES) {
    const probe = container[property];
    if (probe === undefined) continue;
    if (role === "init") field.at(name).invalid(forbidden);
    validateProbe(probe, kind, field.at(name));
  }
  if (container.lifecycle === undefined) return;
  if (role === "init") field.at("lifecycle").invalid(forbidden);
  validateLifecycle(container.lifecycle, field.at("lifecycle"));
}
