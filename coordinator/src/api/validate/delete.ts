import type { DeleteResourcesRequest } from "@forage/proto/forest/v1/forage";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";
import { validateLabels } from "./labels.ts";
import { dnsLabelProblem } from "./syntax/names.ts";

export function validateDelete({ namespace, labels }: DeleteResourcesRequest): void {
  const findings = new Findings();
  const request = new Field(findings);
  const problem = dnsLabelProblem(namespace);
  request.at("namespace").check(problem);
  if (Object.keys(labels).length === 0) {
    const all = `forage delete --all --namespace ${problem === undefined ? namespace : "NAMESPACE"}`;
    request.at("labels").invalid(`must not be empty; to remove everything in a namespace use \`${all}\``);
  }
  validateLabels(labels, request.at("labels"));
  findings.raise();
}
