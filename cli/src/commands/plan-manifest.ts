import type { PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import type { Coordinator } from "../client/coordinator.ts";
import type { Context } from "../context.ts";
import type { Bundle, Manifest } from "../manifest/bundles.ts";
import { plainText } from "../output/plain-text.ts";
import { planBundles } from "./plan-bundles.ts";
import { type PlannedObject, planObjects } from "./put-objects.ts";

export interface PlannedManifest {
  /** The plans in the order of the bundles. */
  readonly plans: readonly PlanResponse[];
  readonly objects: readonly PlannedObject[];
}

/**
 * Returns the plan of an apply of the manifest, and changes nothing. An apply creates priority
 * classes first. A plan can't use a class that does not exist yet, so pods are planned without it,
 * as a note states.
 */
export async function planManifest(
  { world }: Context,
  coordinator: Coordinator,
  manifest: Manifest,
): Promise<PlannedManifest> {
  const objects = await planObjects(coordinator, manifest.objects);
  const missing = objects
    .filter(({ object: { spec }, action }) => spec?.$case === "priorityClass" && action === "create")
    .map(({ object: { name } }) => name);
  for (const name of missing)
    world.stderr.write(
      `note: the priority class "${plainText(name)}" does not exist yet; its pods are planned without it\n`,
    );
  const bundles = manifest.bundles.map((bundle) => withoutClasses(bundle, missing));
  return { plans: await planBundles(coordinator, bundles), objects };
}

function withoutClasses(bundle: Bundle, names: readonly string[]): Bundle {
  if (names.length === 0) return bundle;
  const resources = bundle.request.resources.map((resource) => withoutClass(resource, names));
  return { ...bundle, request: { ...bundle.request, resources } };
}

function withoutClass(resource: ForageResource, names: readonly string[]): ForageResource {
  const { spec } = resource;
  switch (spec?.$case) {
    case "containerService":
    case "cronJob":
    case "job": {
      const { podConfig } = spec.value;
      if (podConfig === undefined || !names.includes(podConfig.priorityClassName)) return resource;
      const value = { ...spec.value, podConfig: { ...podConfig, priorityClassName: "" } };
      return { ...resource, spec: { ...spec, value } as ForageResource["spec"] };
    }
    default:
      return resource;
  }
}
