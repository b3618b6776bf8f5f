import type { ResourceList, ResourceRequirements } from "@forage/proto/forest/v1/forage";
import { NANO_PER_UNIT } from "@forage/scheduler";
import type { Field } from "../field.ts";
import { labelKeyProblem } from "../syntax/names.ts";
import { amountOf } from "../syntax/quantity.ts";

interface NamedAmount {
  readonly field: Field;
  readonly nano: bigint;
  readonly extended: boolean;
}

export function validateResources({ requests, limits }: ResourceRequirements, field: Field): void {
  const requested = amountsIn(requests, field.at("requests"));
  const allowed = amountsIn(limits, field.at("limits"));
  for (const [name, request] of requested) {
    const limit = allowed.get(name);
    if (limit !== undefined && request.nano > limit.nano)
      request.field.invalid("must not be more than the limit");
    // Devices can't be shared, so the request must equal the limit.
    else if (request.extended && request.nano > 0n && limit?.nano !== request.nano)
      request.field.invalid("must have a limit of the same amount");
  }
}

function amountsIn(list: ResourceList | undefined, field: Field): Map<string, NamedAmount> {
  const found = new Map<string, NamedAmount>();
  if (list === undefined) return found;
  const plain = [
    ["cpu", "cpu", list.cpu],
    ["memory", "memory", list.memory],
    ["ephemeral-storage", "ephemeral_storage", list.ephemeralStorage],
  ] as const;
  for (const [resource, name, text] of plain) {
    if (text !== "") add(found, resource, text, field.at(name), false);
  }
  for (const [resource, text] of Object.entries(list.extended)) {
    const at = field.at("extended").key(resource);
    at.check(extendedNameProblem(resource));
    add(found, resource, text, at, true);
  }
  return found;
}

function add(
  found: Map<string, NamedAmount>,
  resource: string,
  text: string,
  field: Field,
  extended: boolean,
): void {
  const { nano, problem } = amountOf(resource, text);
  if (problem !== undefined) {
    field.invalid(problem);
    return;
  }
  if (extended && nano % NANO_PER_UNIT !== 0n) field.invalid("must be a whole number");
  found.set(resource, { field, nano, extended });
}

/**
 * Validates the name of an extended resource, such as `vendor.example/thing`. Kubernetes' own resources have fields of
 * their own.
 */
function extendedNameProblem(name: string): string | undefined {
  if (["cpu", "memory", "ephemeral-storage", "ephemeral_storage"].includes(name))
    return "has a field of its own";
  const problem = labelKeyProblem(name);
  if (problem !== undefined) return `the name ${problem}`;
  if (!name.includes("/")) return "the name must have the form vendor.example/thing";
  return /(^|\.)kubernetes\.io\//.test(name) ? "the name must not be of kubernetes.io" : undefined;
}
