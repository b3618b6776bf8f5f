import type {
  Affinity,
  NodeAffinity,
  PodAffinityTerm,
  WeightedPodAffinityTerm,
} from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { dnsLabelProblem } from "../syntax/names.ts";
import { rangeProblem } from "../syntax/numbers.ts";
import { validateLabelSelector } from "./label-selector.ts";
import { validateNodeSelectorTerm } from "./node-selector.ts";
import { topologyKeyProblem } from "./topology-spread.ts";

/** The limit of terms, because each is evaluated for every node. */
const MAX_TERMS = 64;
const MAX_NAMESPACES = 64;

export function validateAffinity(
  { nodeAffinity, podAffinity, podAntiAffinity }: Affinity,
  field: Field,
): void {
  if (nodeAffinity !== undefined) validateNodeAffinity(nodeAffinity, field.at("node_affinity"));
  if (podAffinity !== undefined) validatePodAffinity(podAffinity, field.at("pod_affinity"));
  if (podAntiAffinity !== undefined) validatePodAffinity(podAntiAffinity, field.at("pod_anti_affinity"));
}

function validateNodeAffinity({ preferred, required }: NodeAffinity, field: Field): void {
  checkCount(preferred, field.at("preferred"));
  for (const [index, { weight, preference }] of preferred.entries()) {
    const at = field.at("preferred").item(index);
    at.at("weight").check(rangeProblem(weight, 1, 100));
    if (preference === undefined) at.at("preference").invalid("must be set");
    else validateNodeSelectorTerm(preference, at.at("preference"));
  }
  if (required === undefined) return;
  const terms = field.at("required").at("terms");
  if (required.terms.length === 0) terms.invalid("must not be empty: no node would match");
  checkCount(required.terms, terms);
  for (const [index, term] of required.terms.entries()) validateNodeSelectorTerm(term, terms.item(index));
}

function validatePodAffinity(
  {
    preferred,
    required,
  }: {
    readonly preferred: readonly WeightedPodAffinityTerm[];
    readonly required: readonly PodAffinityTerm[];
  },
  field: Field,
): void {
  checkCount(preferred, field.at("preferred"));
  checkCount(required, field.at("required"));
  for (const [index, { weight, term }] of preferred.entries()) {
    const at = field.at("preferred").item(index);
    at.at("weight").check(rangeProblem(weight, 1, 100));
    if (term === undefined) at.at("term").invalid("must be set");
    else validateTerm(term, at.at("term"));
  }
  for (const [index, term] of required.entries()) validateTerm(term, field.at("required").item(index));
}

function validateTerm({ labelSelector, topologyKey, namespaces }: PodAffinityTerm, field: Field): void {
  field.at("topology_key").check(topologyKeyProblem(topologyKey));
  if (labelSelector !== undefined) validateLabelSelector(labelSelector, field.at("label_selector"));
  if (namespaces.length > MAX_NAMESPACES) field.at("namespaces").invalid(`must be at most ${MAX_NAMESPACES}`);
  for (const [index, namespace] of namespaces.entries())
    field.at("namespaces").item(index).check(dnsLabelProblem(namespace));
}

function checkCount(terms: readonly unknown[], field: Field): void {
  if (terms.length > MAX_TERMS) field.invalid(`must be at most ${MAX_TERMS}, but ${terms.length} were given`);
}
