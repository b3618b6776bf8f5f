import type {
  CreateApiTokenRequest,
  CreateJoinTokenRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { hostnameLabel } from "../../state/node-labels.ts";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";
import { validateLabels } from "./labels.ts";
import { dnsLabelProblem } from "./syntax/names.ts";
import { controlProblem, lengthProblem } from "./syntax/text.ts";

const maxDescriptionBytes = 1024;
/** A token for more is one for all. */
const maxNamespaces = 100;

/** The labels become the node's; the rest is checked where tokens are made. */
export function validateJoinToken({ labels, nodeName }: CreateJoinTokenRequest): void {
  const findings = new Findings();
  const field = new Field(findings).at("labels");
  validateLabels(labels, field);
  for (const key of [hostnameLabel, "hostname"]) {
    if (Object.hasOwn(labels, key) && labels[key] !== nodeName)
      field.key(key).invalid("is always the node's name, which its certificate proves");
  }
  findings.raise();
}

/** A namespace that can't exist would make a token that reaches nothing. */
export function validateApiToken({ namespaces, description }: CreateApiTokenRequest): void {
  const findings = new Findings();
  const request = new Field(findings);
  const field = request.at("namespaces");
  if (namespaces.length > maxNamespaces) field.invalid(`must be at most ${maxNamespaces}; none means all`);
  for (const [index, namespace] of namespaces.entries()) field.item(index).check(dnsLabelProblem(namespace));
  request
    .at("description")
    .check(controlProblem(description) ?? lengthProblem(description, maxDescriptionBytes));
  findings.raise();
}
