import type { PodConfig } from "@forage/proto/forest/v1/forage";
import { POD_OPAQUE_PORTS } from "../../../endpoints/pod-opaque.ts";
import { parsePorts } from "../../../endpoints/ports.ts";
import type { Field } from "../field.ts";
import { validateAnnotations, validateLabels } from "../labels.ts";
import { dnsSubdomainProblem } from "../syntax/names.ts";
import { waitSecondsProblem } from "../syntax/numbers.ts";
import { choiceProblem, requiredChoiceProblem } from "../syntax/text.ts";
import { validateAffinity } from "./affinity.ts";
import { validateDns } from "./dns.ts";
import { validatePodSecurity } from "./security-context.ts";
import { validateTolerations } from "./tolerations.ts";
import { validateTopologySpread } from "./topology-spread.ts";

const MAX_PULL_SECRETS = 32;
/** Annotations that the agent evaluates, with their allowed values. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  "forage.dev/log-streams": ["combined", "separate"],
};

export function validatePodConfig(config: PodConfig, field: Field): void {
  validateNames(config, field);
  field.at("restart_policy").check(choiceProblem(config.restartPolicy, ["Always", "OnFailure", "Never"]));
  field
    .at("termination_grace_period_seconds")
    .check(waitSecondsProblem(config.terminationGracePeriodSeconds));
  validateDns(config, field);
  validateLabels(config.nodeSelector, field.at("node_selector"));
  validateTolerations(config.tolerations, field.at("tolerations"));
  if (config.affinity !== undefined) validateAffinity(config.affinity, field.at("affinity"));
  validateTopologySpread(config.topologySpreadConstraints, field.at("topology_spread_constraints"));
  if (config.securityContext !== undefined)
    validatePodSecurity(config.securityContext, field.at("security_context"));
  validateAnnotations(config.annotations, field.at("annotations"));
  for (const [key, allowed] of Object.entries(CHOICES)) {
    const text = config.annotations[key];
    if (text !== undefined) field.at("annotations").key(key).check(requiredChoiceProblem(text, allowed));
  }
  const opaque = parsePorts(config.annotations[POD_OPAQUE_PORTS] ?? "");
  if ("problem" in opaque) field.at("annotations").key(POD_OPAQUE_PORTS).invalid(opaque.problem);
  validateLabels(config.labels, field.at("labels"));
}

/** Validates names of other objects. Whether these exist is checked when pods start. */
function validateNames(config: PodConfig, field: Field): void {
  const names = [
    ["service_account_name", config.serviceAccountName],
    ["priority_class_name", config.priorityClassName],
    ["runtime_class_name", config.runtimeClassName],
  ] as const;
  for (const [name, text] of names) if (text !== "") field.at(name).check(dnsSubdomainProblem(text));
  const secrets = field.at("image_pull_secrets");
  if (config.imagePullSecrets.length > MAX_PULL_SECRETS)
    secrets.invalid(`must be at most ${MAX_PULL_SECRETS}`);
  for (const [index, secret] of config.imagePullSecrets.entries())
    secrets.item(index).check(dnsSubdomainProblem(secret));
}
