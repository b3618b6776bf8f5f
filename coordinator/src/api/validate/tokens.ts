import type {
  CreateApiTokenRequest,
  CreateJoinTokenRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { HOSTNAME_LABEL } from "../../state/node-labels.ts";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";
import { validateLabels } from "./labels.ts";
import { dnsLabelProblem } from "./syntax/names.ts";
import { controlProblem, lengthProblem } from "./syntax/text.ts";
import { validateNewTaints } from "./update-node.ts";

const MAX_DESCRIPTION_BYTES = 1024;
/** The limit of namespaces. A caller that needs more creates a token for all namespaces. */
const MAX_NAMESPACES = 100;

/** Validates the labels and taints that the node will have. Other fields are validated where tokens are created. */
export function validateJoinToken({ labels, taints, nodeName }: CreateJoinTokenRequest): void {
  const findings = new Findings();
  const request = new Field(findings);
  const field = request.at("labels");
  validateLabels(labels, field);
  for (const key of [HOSTNAME_LABEL, "hostname"]) {
    if (Object.hasOwn(labels, key) && labels[key] !== nodeName)
      field.key(key).invalid("is always the node's name, which its certificate proves");
  }
  validateNewTaints(taints, request.at("taints"));
  findings.raise();
}

/** Validates the namespaces and the description. An invalid namespace would make a token without access to anything. */
export function validateApiToken({ namespaces, description }: CreateApiTokenRequest): void {
  const findings = new Findings();
  const request = new Field(findings);
  const field = request.at("namespaces");
  if (namespaces.length > MAX_NAMESPACES) field.invalid(`must be at most ${MAX_NAMESPACES}; none means all`);
  for (const [index, namespace] of namespaces.entries()) field.item(index).check(dnsLabelProblem(namespace));
  request
    .at("description")
    .check(controlProblem(description) ?? lengthProblem(description, MAX_DESCRIPTION_BYTES));
  findings.raise();
}
