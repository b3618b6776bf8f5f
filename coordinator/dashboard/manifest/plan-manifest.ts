import { locate } from "@forage/cli/manifest/locate";
import { ApiError } from "../data/api-error.ts";
import type { PlanAnswer, PlannedResource } from "../data/wire.ts";
import { manifestFault, placeOf } from "./manifest-fault.ts";
import { withJsonNames, withoutPriorityClass } from "./mapping.ts";
import {
  type PastedBundle,
  type PastedObject,
  type ReadManifestOptions,
  readManifest,
} from "./read-manifest.ts";

export interface PlanManifestOptions extends ReadManifestOptions {
  /** Calls a method of the operator service. Throws ApiError. */
  readonly call: <Answer>(method: "plan" | "planObject", request: object) => Promise<Answer>;
}

/** The result of planning a pasted manifest. */
export interface PlannedManifest {
  /** The planned objects. The namespace is empty for cluster-scoped kinds. */
  readonly objects: readonly { readonly namespace: string; readonly plan: PlannedResource }[];
  readonly plans: readonly { readonly namespace: string; readonly plan: PlanAnswer }[];
  /** The converted manifest in YAML; undefined if nothing was converted. */
  readonly converted: string | undefined;
  /** One line for each part that was omitted in the conversion. */
  readonly losses: readonly string[];
  readonly notes: readonly string[];
}

/**
 * Reads a manifest, converts it from another notation if necessary, and plans the changes and steps
 * of applying it. Nothing is changed. Throws ApiError with lines and fields. An apply creates
 * priority classes first; a plan can't use a class that does not exist yet, so pods are planned
 * without it, with a note.
 */
export async function planManifest(text: string, options: PlanManifestOptions): Promise<PlannedManifest> {
  const { bundles, objects, converted, losses } = readManifest(text, options);
  const notes: string[] = [];
  const plannedObjects: { namespace: string; plan: PlannedResource }[] = [];
  const missing = new Set<string>();
  for (const object of objects) {
    const plan = await planObject(object, options);
    plannedObjects.push({ namespace: object.namespace, plan });
    if (object.kind === "priority_class" && plan.action === "create") missing.add(object.name);
  }
  for (const name of missing)
    notes.push(`The priority class "${name}" does not exist yet. Its pods are planned without it.`);
  const plans: { namespace: string; plan: PlanAnswer }[] = [];
  for (const bundle of bundles) plans.push(await planBundle(bundle, missing, options));
  return {
    ...{ objects: plannedObjects, plans, converted, notes },
    losses: losses.map((problem) => `${placeOf(problem)}: ${problem.message}`),
  };
}

async function planBundle(
  bundle: PastedBundle,
  missing: ReadonlySet<string>,
  { call }: PlanManifestOptions,
): Promise<PlannedManifest["plans"][number]> {
  const { namespace, content } = bundle;
  const resources = content.resources as readonly unknown[];
  const planned = resources.map((resource) => withoutPriorityClass(resource, missing));
  try {
    const request = { namespace, bundle: { ...content, resources: planned } };
    return { namespace, plan: await call<PlanAnswer>("plan", request) };
  } catch (error) {
    throw located(bundle, error);
  }
}

/** Adds the positions in the manifest to an error of the coordinator. */
function located(bundle: PastedBundle, error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const found = error.violations.map((violation) => locate(bundle, violation));
  const problems = found.flatMap((problem) => problem ?? []);
  if (problems.length === 0) return error;
  const rest = error.violations.filter((_, index) => found[index] === undefined);
  const { violations, message } = manifestFault(problems, "the coordinator refuses the manifest:");
  return new ApiError(error.code, message, [...violations, ...rest]);
}

async function planObject(
  { namespace, name, kind, written, origin }: PastedObject,
  { call }: PlanManifestOptions,
): Promise<PlannedResource> {
  const spec = written[kind] as Readonly<Record<string, unknown>>;
  const object = { ...withJsonNames({ ...written, [kind]: withJsonNames(spec) }), namespace, name };
  try {
    const answer = await call<PlannedResource>("planObject", { namespace, object });
    return { ...answer, kind, name };
  } catch (error) {
    // The plan reveals whether values are equal, so it requires the permission to change the
    // object.
    if (error instanceof ApiError && error.code === "PERMISSION_DENIED")
      return { kind, name, action: "not planned", notes: [error.message] };
    if (!(error instanceof ApiError) || error.violations.length === 0) throw error;
    const problems = error.violations.map(({ field, description }) => ({
      position: origin.document.positionOf(origin.node),
      path: origin.path,
      message: `${field.replace(/^object\./, "")}: ${description}`,
    }));
    throw manifestFault(problems, "the coordinator refuses an object:");
  }
}
