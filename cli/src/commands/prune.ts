import type { Resource, ResourceRef } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { confirm } from "./confirm.ts";

export const PRUNE_FLAG = {
  type: "text",
  hint: "yes|no",
  help: "whether resources with the manifests' labels that they don't name are removed; asked on a terminal, else yes",
} as const;

export function pruneOf(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text === "yes" || text === "no") return text === "yes";
  throw new CliError("USAGE", `--prune is yes or no, not "${text}"`);
}

/** The most names shown; more would push the question off the screen. */
const MAX_NAMED = 20;

/**
 * The resources that an apply may remove: none, all that the manifests do not name, or those that
 * the user agreed to.
 */
export type Pruning =
  | { readonly type: "none" }
  | { readonly type: "all" }
  | { readonly type: "agreed"; readonly resources: readonly ResourceRef[] };

/**
 * Returns the resources that the apply may remove. Without the flag, the user is asked on a
 * terminal.
 */
export async function choosePruning(
  context: Context,
  coordinator: Coordinator,
  bundles: readonly Bundle[],
  flag: boolean | undefined,
): Promise<Pruning> {
  if (flag !== undefined || context.world.stdin.isTTY !== true)
    return { type: (flag ?? true) ? "all" : "none" };
  const removed: Resource[] = [];
  for (const { request } of bundles) {
    const { namespace, labels } = request;
    if (Object.keys(labels).length === 0) continue;
    const { resources } = await coordinator.call(operator.listResources, { namespace, labels });
    removed.push(...resources.filter((resource) => !resource.deleting && !isKept(resource, bundles)));
  }
  // The choice is also limited if there are none now, because a resource may appear before the
  // bundles are sent.
  const agreed: Pruning = {
    type: "agreed",
    resources: removed.map(({ namespace, kind, name }) => ({ namespace, kind, name })),
  };
  if (removed.length === 0) return agreed;
  const names = removed
    .slice(0, MAX_NAMED)
    .map(({ namespace, kind, name }) => `  ${namespace} ${kind}/${name}`);
  const more = removed.length > names.length ? [`  and ${removed.length - names.length} more`] : [];
  const lines = ["the manifests do not name these resources, which have their labels:", ...names, ...more];
  const which = removed.length === 1 ? "it" : `all ${removed.length}`;
  const question = `Remove ${which} from ${context.settings.place()}?`;
  if (await confirm(context, `${lines.join("\n")}\n${question} [y/N] `)) return agreed;
  throw new CliError("REFUSED", "nothing was applied; --prune=no applies the manifests and removes nothing");
}

/**
 * Reports whether a bundle contains the resource, or whether its owner manages it, as for the runs
 * of a cron job.
 */
function isKept({ namespace, kind, name, owner }: Resource, bundles: readonly Bundle[]): boolean {
  if (owner !== "") return true;
  return bundles.some(
    ({ request }) =>
      request.namespace === namespace &&
      request.resources.some((resource) => resource.name === name && kindOf(resource.spec?.$case) === kind),
  );
}

/**
 * Converts the field of a specification to a kind: `containerService` becomes `container_service`.
 */
export function kindOf(field: string | undefined): string {
  return (field ?? "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
