import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { annotationsOf, type Dependency, dependenciesOf, parseDependsOn } from "../../model/depends-on.ts";
import { JOB_ANNOTATIONS } from "../../model/job-annotations.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { type BundleChoices, kindOf, planBundle } from "../forage/bundle.ts";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";

/**
 * Checks dependencies between resources. @throws CoordinatorError INVALID with every dependency that will not exist after
 * the apply, and every cycle.
 */
export function checkDependsOn(
  request: ApplyResourcesRequest,
  stored: readonly ResourceEntry[],
  choices: Pick<BundleChoices, "keepOthers"> = {},
): void {
  const findings = new Findings();
  const root = new Field(findings).at("resources");
  const graph = graphOf(request, stored, choices);
  for (const [index, resource] of request.resources.entries()) {
    const text = annotationsOf(resource)?.[JOB_ANNOTATIONS.dependsOn];
    if (text === undefined) continue;
    const kind = kindOf(resource);
    const field = root.item(index).at(kind).at("pod_config").at("annotations").key(JOB_ANNOTATIONS.dependsOn);
    const found = parseDependsOn(text);
    if (typeof found === "string") {
      field.invalid(found);
      continue;
    }
    for (const one of found)
      if (!graph.has(keyOf(one)))
        field.invalid(`there is no ${keyOf(one)} in namespace "${request.namespace}", nor in this request`);
    const circle = circleFrom(`${kind}/${resource.name}`, graph);
    if (circle !== undefined) field.invalid(`waits for itself: ${circle.join(" → ")}`);
  }
  findings.raise();
}

/** Returns the dependencies after the request is applied, by `kind/name`. */
function graphOf(
  request: ApplyResourcesRequest,
  stored: readonly ResourceEntry[],
  choices: Pick<BundleChoices, "keepOthers">,
): Map<string, readonly Dependency[]> {
  const graph = new Map<string, readonly Dependency[]>();
  for (const { record } of stored)
    if (!record.deleting) graph.set(`${record.kind}/${record.name}`, dependenciesOf(record));
  for (const { kind, name, action, resource } of planBundle(request, stored, choices)) {
    if (action === "remove") graph.delete(`${kind}/${name}`);
    else graph.set(`${kind}/${name}`, dependenciesOf({ resource }));
  }
  return graph;
}

/** Returns the cycle that leads from `start` back to it. Undefined: there is none. */
function circleFrom(start: string, graph: ReadonlyMap<string, readonly Dependency[]>): string[] | undefined {
  const paths = [[start]];
  const seen = new Set<string>();
  for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
    for (const next of graph.get(path.at(-1) ?? "") ?? []) {
      const key = keyOf(next);
      if (key === start) return [...path, start];
      if (!seen.has(key)) paths.push([...path, key]);
      seen.add(key);
    }
  }
  return undefined;
}

function keyOf({ kind, name }: Dependency): string {
  return `${kind}/${name}`;
}
