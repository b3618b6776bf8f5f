import { PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { describeDifference } from "../view/difference.ts";
import { answerByExitCode } from "./plan-exit.ts";
import { planManifest } from "./plan-manifest.ts";
import { describeObjectChange, plannedObjectJson } from "./planned-object.ts";
import { kindOf } from "./prune.ts";
import { LOSSY_FLAG, MANIFEST_FLAG, type ManifestFlags, readManifests } from "./read-manifests.ts";

export const diff = defineCommand({
  name: "diff",
  summary: "Show the fields that an apply would change, and change nothing",
  details: `- is what is deployed, + is what the manifests say. Resources that the apply would remove, unless it is given --prune=no, come last.
The plan command also shows the steps. Exit codes: 0 nothing would change, 1 something would, 255 the difference could not be found.`,
  flags: { file: MANIFEST_FLAG, lossy: LOSSY_FLAG },
  run: (invocation) => answerByExitCode(() => run(contextOf(invocation), invocation.flags)),
});

async function run(context: Context, flags: ManifestFlags): Promise<ExitCode> {
  const manifest = await readManifests(context, flags);
  const { bundles } = manifest;
  const { plans, objects } = await withCoordinator(context, (coordinator) =>
    planManifest(context, coordinator, manifest),
  );
  const changed = objects.filter(({ action }) => action !== "unchanged");
  printOne(
    context,
    () => [
      ...plans.map((each, index) => differenceOf(each, bundles[index]?.request.namespace)),
      ...changed.map(plannedObjectJson),
    ],
    () =>
      changed.map((each) => describeObjectChange(each, context)).join("") + describe(context, plans, bundles),
  );
  return changed.length > 0 || plans.some(({ changes }) => changes) ? EXIT.changes : EXIT.ok;
}

/** Removes the steps, which only the plan command shows. */
function differenceOf(plan: PlanResponse, namespace: string | undefined): unknown {
  const resources = plan.resources
    .filter(({ action }) => action !== "unchanged")
    .map((resource) => ({ ...resource, steps: [], notes: [] }));
  return { namespace, ...(PlanResponse.toJSON({ ...plan, resources }) as object) };
}

function describe(
  { format, paint }: Context,
  plans: readonly PlanResponse[],
  bundles: readonly Bundle[],
): string {
  const parts = plans.flatMap(({ resources }, index) => {
    const { namespace = "", resources: desired = [] } = bundles[index]?.request ?? {};
    return resources.flatMap((resource) => {
      if (resource.action === "unchanged") return [];
      if (format === "name") return [`${resource.kind}/${resource.name}\n`];
      return [describeDifference(namespace, resource, find(desired, resource.kind, resource.name), paint)];
    });
  });
  return parts.join("");
}

function find(desired: readonly ForageResource[], kind: string, name: string): ForageResource | undefined {
  return desired.find((each) => each.name === name && kindOf(each.spec?.$case) === kind);
}
