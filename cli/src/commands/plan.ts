import { PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { describePlanned } from "../view/plan.ts";
import { answerByExitCode } from "./plan-exit.ts";
import { planManifest } from "./plan-manifest.ts";
import { describeObjectChange, plannedObjectJson } from "./planned-object.ts";
import type { PlannedObject } from "./put-objects.ts";
import { LOSSY_FLAG, MANIFEST_FLAG, type ManifestFlags, readManifests } from "./read-manifests.ts";

export const plan = defineCommand({
  name: "plan",
  summary: "Show what an apply would do, step by step, and change nothing",
  details: `The coordinator tries the manifests out on a copy of the fleet, with the same checks and the same decisions as for an
apply. It supposes that new pods become ready and that those which are stopped end. Steps of one round are taken together.
Resources that the apply would remove, unless it is given --prune=no, come last.
Exit codes: 0 nothing would change, 1 something would, 255 the plan could not be made.`,
  flags: { file: MANIFEST_FLAG, lossy: LOSSY_FLAG },
  run: (invocation) => answerByExitCode(() => run(contextOf(invocation), invocation.flags)),
});

async function run(context: Context, flags: ManifestFlags): Promise<ExitCode> {
  const manifest = await readManifests(context, flags);
  const { bundles } = manifest;
  const { plans, objects } = await withCoordinator(context, (coordinator) =>
    planManifest(context, coordinator, manifest),
  );
  const namespaces = bundles.map(({ request }) => request.namespace);
  printOne(
    context,
    () => [
      ...plans.map((each, index) => ({
        namespace: namespaces[index],
        ...(PlanResponse.toJSON(each) as object),
      })),
      ...objects.map(plannedObjectJson),
    ],
    () => describe(context, plans, namespaces, objects),
  );
  const isChanged = objects.some(({ action }) => action !== "unchanged");
  return isChanged || plans.some(({ changes }) => changes) ? EXIT.changes : EXIT.ok;
}

function describe(
  context: Context,
  plans: readonly PlanResponse[],
  namespaces: readonly string[],
  objects: readonly PlannedObject[],
): string {
  const { format, paint } = context;
  const resources = plans.flatMap((each) => each.resources);
  const changing = resources.filter(({ action }) => action !== "unchanged");
  const changingObjects = objects.filter(({ action }) => action !== "unchanged");
  const first = changingObjects.map((each) => describeObjectChange(each, context)).join("");
  if (format === "name") return first + changing.map(({ kind, name }) => `${kind}/${name}\n`).join("");
  const several = new Set(namespaces).size > 1;
  const parts = plans.map((each, index) => {
    const title = several ? `${paint("strong", `Namespace ${namespaces[index]}:`)}\n` : "";
    return title + each.resources.map((resource) => describePlanned(resource, paint)).join("");
  });
  const count = changing.length + changingObjects.length;
  return `${first}${parts.join("\n")}${summaryOf(count, resources.length + objects.length - count)}\n`;
}

function summaryOf(changing: number, unchanged: number): string {
  if (changing === 0) return "nothing would change";
  const rest = unchanged === 0 ? "" : `, ${unchanged} unchanged`;
  return `${changing === 1 ? "1 resource" : `${changing} resources`} would change${rest}`;
}
