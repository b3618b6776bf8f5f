import type {
  PodPolicy,
  SetNamespacePolicyRequest,
  SetNamespaceQuotaRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { SchedulerError } from "@forage/scheduler";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { capabilityProblem } from "../validate/syntax/capability.ts";
import { dnsLabelProblem, labelKeyProblem } from "../validate/syntax/names.ts";
import { absolutePathProblem } from "../validate/syntax/paths.ts";
import { controlProblem, lengthProblem, requiredChoiceProblem } from "../validate/syntax/text.ts";
import { POLICY_ROLES, PROFILES } from "./policy.ts";
import { limitAmount } from "./quota.ts";
import { QUOTA_RESOURCES } from "./usage.ts";

/** The limit of entries in a list of a policy, because every pod is compared with them. */
const MAX_ENTRIES = 100;
const MAX_ENTRY_BYTES = 1024;

/** Validates the request. @throws CoordinatorError INVALID. */
export function validatePolicy({ namespace, policy, remove }: SetNamespacePolicyRequest): void {
  const findings = new Findings();
  const request = new Field(findings);
  request.at("namespace").check(dnsLabelProblem(namespace));
  const field = request.at("policy");
  if (policy === undefined) field.invalid("must be set");
  else {
    if (!POLICY_ROLES.some((role) => role === policy.role))
      field.at("role").invalid("must be editor, admin, global or empty (editor and admin)");
    if (!remove) validateContent(policy, field);
  }
  findings.raise();
}

function validateContent(policy: PodPolicy, field: Field): void {
  field.at("profile").check(requiredChoiceProblem(policy.profile, PROFILES));
  const lists = [
    ["host_ports", policy.hostPorts, portsProblem],
    ["host_paths", policy.hostPaths, (text: string) => absolutePathProblem(text.replace(/:ro$/, ""))],
    ["capabilities", policy.capabilities, capabilityProblem],
    ["devices", policy.devices, labelKeyProblem],
    ["runtime_classes", policy.runtimeClasses, controlProblem],
  ] as const;
  for (const [name, entries, problemOf] of lists) {
    const at = field.at(name);
    if (entries.length > MAX_ENTRIES) at.invalid(`must be at most ${MAX_ENTRIES}`);
    for (const [index, text] of entries.slice(0, MAX_ENTRIES).entries())
      at.item(index).check(lengthProblem(text, MAX_ENTRY_BYTES) ?? problemOf(text));
  }
}

function portsProblem(text: string): string | undefined {
  const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text);
  const [first, last] = [Number(match?.[1]), Number(match?.[2] ?? match?.[1])];
  return match !== null && first >= 1 && first <= last && last <= 65_535
    ? undefined
    : "must be a port or FIRST-LAST, such as 8000-8099";
}

/** Validates the request. @throws CoordinatorError INVALID with every problem. */
export function validateQuota({ namespace, limits }: SetNamespaceQuotaRequest): void {
  const findings = new Findings();
  const request = new Field(findings);
  request.at("namespace").check(dnsLabelProblem(namespace));
  for (const [name, text] of Object.entries(limits)) {
    const at = request.at("limits").key(name);
    const resource = QUOTA_RESOURCES.find((it) => it === name);
    if (resource === undefined) at.invalid(`must be one of ${QUOTA_RESOURCES.join(", ")}`);
    else if (text !== "") at.check(amountProblem(() => limitAmount(resource, text)));
  }
  findings.raise();
}

function amountProblem(parse: () => number): string | undefined {
  try {
    return parse() < 0 ? "must not be negative" : undefined;
  } catch (error) {
    if (!(error instanceof SchedulerError)) throw error;
    return "must be a quantity such as 20, 500m or 8Gi";
  }
}
