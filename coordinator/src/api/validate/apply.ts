import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";
import { validateLabels } from "./labels.ts";
import { validateResource } from "./resource.ts";
import { dnsLabelProblem } from "./syntax/names.ts";
import { controlProblem, lengthProblem } from "./syntax/text.ts";
import { checkReplicatedSize } from "./workload/replicated-size.ts";

/**
 * The limit of resources. One transaction holds the whole request, the changes of removed resources and its bookkeeping.
 */
const MAX_RESOURCES = 100;
/** The limit of an apply id, which is escaped and becomes part of a store key with at most 1,024 bytes. */
const MAX_APPLY_ID_BYTES = 256;
/**
 * The limit of a request. A transaction of the store has 1.5 MiB; the rest is for removals and labels, which every record
 * has.
 */
const MAX_REQUEST_BYTES = 1024 * 1024;

/**
 * Validates the request. Every field of the API has an effect, so no field is unsupported. @throws CoordinatorError INVALID
 * with every violation.
 */
export function validateApply(request: ApplyResourcesRequest): void {
  const findings = new Findings();
  const root = new Field(findings);
  const { applyId, namespace, resources, labels } = request;
  if (applyId === "") root.at("apply_id").invalid("must not be empty: it identifies repeated requests");
  root.at("apply_id").check(lengthProblem(applyId, MAX_APPLY_ID_BYTES) ?? controlProblem(applyId));
  root.at("namespace").check(dnsLabelProblem(namespace));
  validateLabels(labels, root.at("labels"));
  const field = root.at("resources");
  if (resources.length === 0 && Object.keys(labels).length === 0)
    field.invalid("must not be empty, unless labels select the resources to remove");
  if (resources.length > MAX_RESOURCES)
    field.invalid(`must be at most ${MAX_RESOURCES}, but ${resources.length} were given`);
  else checkSize(request, field);
  checkNames(request, field);
  for (const [index, resource] of resources.slice(0, MAX_RESOURCES).entries()) {
    validateResource(resource, field.item(index));
    checkReplicatedSize(resource, labels, field.item(index));
  }
  findings.raise();
}

function checkSize(request: ApplyResourcesRequest, field: Field): void {
  const bytes = ApplyResourcesRequest.encode(request).finish().length;
  if (bytes > MAX_REQUEST_BYTES)
    field.invalid(`the request must not be longer than ${MAX_REQUEST_BYTES} bytes, has ${bytes}`);
}

function checkNames({ resources }: ApplyResourcesRequest, field: Field): void {
  const seen = new Map<string, number>();
  for (const [index, { name, spec }] of resources.slice(0, MAX_RESOURCES).entries()) {
    const key = `${spec?.$case}/${name}`;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, index);
    else
      field
        .item(index)
        .at("name")
        .invalid(`is the same as the name of resources[${first}], which has the same kind`);
  }
}
