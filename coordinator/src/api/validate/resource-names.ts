import type { ApplyResourcesRequest, Container, ForageResource } from "@forage/proto/forest/v1/forage";
import type { ResourceEntry } from "../../state/entries.ts";
import { kindOf } from "../forage/bundle.ts";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";

/**
 * The limit of different extended resources in the workloads of one namespace, because each uses memory in the scheduler.
 */
const MAX_NAMES_PER_NAMESPACE = 32;

/**
 * Checks the number of extended resources of the namespace. @throws CoordinatorError INVALID with the first resource of the
 * request that exceeds it.
 */
export function checkResourceNames(
  { namespace, resources }: ApplyResourcesRequest,
  stored: readonly ResourceEntry[],
): void {
  const findings = new Findings();
  const root = new Field(findings).at("resources");
  const replaced = new Set(resources.map((resource) => `${kindOf(resource)}/${resource.name}`));
  const names = new Set<string>();
  for (const { record } of stored) {
    if (record.deleting || replaced.has(`${record.kind}/${record.name}`)) continue;
    for (const name of record.resource === undefined ? [] : extendedNames(record.resource)) names.add(name);
  }
  for (const [index, resource] of resources.entries()) {
    const own = extendedNames(resource);
    const fresh = own.filter((name) => !names.has(name));
    for (const name of fresh) names.add(name);
    if (fresh.length === 0 || names.size <= MAX_NAMES_PER_NAMESPACE) continue;
    const field = root.item(index).at(kindOf(resource));
    field.invalid(
      `the workloads of namespace "${namespace}" would request ${names.size} different extended resources, but at most ${MAX_NAMES_PER_NAMESPACE} are allowed; new in this request: ${fresh.slice(0, 3).join(", ")}`,
    );
    break;
  }
  findings.raise();
}

function extendedNames({ spec }: ForageResource): string[] {
  const names = new Set<string>();
  for (const { resources } of containersOf(spec))
    for (const list of [resources?.requests, resources?.limits])
      for (const name of Object.keys(list?.extended ?? {})) names.add(name);
  return [...names];
}

function containersOf(spec: ForageResource["spec"]): readonly Container[] {
  switch (spec?.$case) {
    case "containerService": {
      const { container, sidecars, initContainers } = spec.value;
      return [...(container === undefined ? [] : [container]), ...sidecars, ...initContainers];
    }
    case "job":
    case "cronJob":
      return spec.value.container === undefined ? [] : [spec.value.container];
    default:
      return [];
  }
}
