import type { Resource, ResourceRef } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { readManifest } from "../manifest/bundles.ts";
import { readSources } from "../manifest/read-sources.ts";
import { plainText } from "../output/plain-text.ts";
import { pause } from "../pause.ts";
import { parseKind } from "../view/kinds.ts";
import { confirm } from "./confirm.ts";
import { titleOf } from "./put-objects.ts";
import { MANIFEST_FLAG } from "./read-manifests.ts";
import { parseResource } from "./reference.ts";
import { parseSelector, SELECTOR_FLAG, type Selector } from "./selector.ts";

/**
 * The interval of polling. Pods may take their whole grace period to stop, so a shorter interval
 * has no benefit.
 */
const LOOK_AGAIN_MS = 300;

export const deleteCommand = defineCommand({
  name: "delete",
  summary: "Stop and remove resources",
  details: `Give exactly one of: KIND/NAME…, -f, -l, --all. Containers are stopped gracefully; a second delete does no harm.
With -f, resources that no longer exist are skipped.`,
  operands: [{ name: "KIND/NAME", repeated: true, help: "what to remove" }],
  flags: {
    file: { ...MANIFEST_FLAG, help: "remove what this manifest holds" },
    label: { ...SELECTOR_FLAG, help: "remove what this selects; as with get -l" },
    all: { type: "switch", help: "remove everything of the namespace" },
    yes: { type: "switch", short: "y", help: "with --all: don't ask" },
    wait: { type: "switch", help: "wait until nothing of it is left" },
  },
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const ways = [operands.length > 0, flags.file.length > 0, flags.label.length > 0, flags.all];
    if (ways.filter(Boolean).length !== 1)
      throw new CliError("USAGE", "give exactly one of KIND/NAME, -f, -l and --all");
    const { namespace } = context.settings;
    const targets: readonly Target[] =
      flags.file.length > 0
        ? await targetsOf(context, flags.file)
        : [
            {
              namespace,
              resources: operands.map(parseResource),
              selector: parseSelector("--label", flags.label),
              all: flags.all,
            },
          ];
    await withCoordinator(context, async (coordinator) => {
      if (flags.all && !flags.yes) await askFirst(context, coordinator);
      const deleted: ResourceRef[] = [];
      for (const target of targets) deleted.push(...(await remove(coordinator, target)));
      report(context, deleted);
      if (flags.wait) await waitUntilGone(context, coordinator, deleted);
    });
    return EXIT.ok;
  },
});

interface Target {
  readonly namespace: string;
  readonly resources: readonly { readonly kind: string; readonly name: string }[];
  readonly selector: Selector;
  readonly all: boolean;
  readonly passOverMissing?: boolean;
}

async function targetsOf(context: Context, files: readonly string[]): Promise<Target[]> {
  const conversion = { env: context.world.env, onLoss: () => {} };
  const sources = await readSources(files, context.world.stdin);
  const { bundles, objects } = readManifest(sources, { ...context.settings, conversion });
  for (const { object } of objects)
    context.world.stderr.write(`${plainText(titleOf(object))} stays: delete it by its own command\n`);
  return bundles.map(({ request: { namespace, resources } }) => ({
    namespace,
    resources: resources.map(({ name, spec }) => ({ kind: parseKind(spec?.$case ?? "") ?? "", name })),
    selector: parseSelector("--label", []),
    all: false,
    passOverMissing: true,
  }));
}

async function remove(coordinator: Coordinator, target: Target): Promise<readonly ResourceRef[]> {
  const { namespace, selector, all, passOverMissing } = target;
  let resources = target.resources.map((resource) => ({ namespace, ...resource }));
  if (!selector.isEqualOnly) {
    const request = { namespace, labels: selector.equal };
    const present = await coordinator.call(operator.listResources, request);
    resources = present.resources
      .filter(({ labels, deleting }) => selector.matches(labels) && !deleting)
      .map(({ kind, name }) => ({ namespace, kind, name }));
    if (resources.length === 0) return [];
    return (await coordinator.call(operator.delete, { namespace, resources, labels: {}, all: false }))
      .deleted;
  }
  if (passOverMissing === true) {
    const present = await coordinator.call(operator.listResources, { namespace, labels: {} });
    resources = resources.filter((ref) => present.resources.some((resource) => isSame(ref, resource)));
    if (resources.length === 0) return [];
  }
  const { deleted } = await coordinator.call(operator.delete, {
    namespace,
    resources,
    labels: selector.equal,
    all,
  });
  return deleted;
}

async function askFirst(context: Context, coordinator: Coordinator): Promise<void> {
  const { namespace } = context.settings;
  const { resources } = await coordinator.call(operator.listResources, { namespace, labels: {} });
  if (resources.length === 0) return;
  const names = resources.map(({ kind, name }) => `  ${kind}/${name}\n`).join("");
  const question = `${names}Delete all of this, the whole namespace "${namespace}" of ${context.settings.place()}? [y/N] `;
  if (!(await confirm(context, question))) throw new CliError("REFUSED", "nothing was deleted");
}

function report(context: Context, deleted: readonly ResourceRef[]): void {
  printListing(context, {
    columns: [
      { title: "NAMESPACE", value: ({ namespace }) => namespace },
      { title: "KIND", value: ({ kind }) => kind },
      { title: "DELETED", value: ({ name }) => name },
    ],
    rows: deleted,
    json: ({ namespace, kind, name }) => ({ namespace, kind, name }),
    name: ({ kind, name }) => `${kind}/${name}`,
    none: "there was nothing left to delete",
  });
}

async function waitUntilGone(
  context: Context,
  coordinator: Coordinator,
  deleted: readonly ResourceRef[],
): Promise<void> {
  const namespaces = [...new Set(deleted.map(({ namespace }) => namespace))];
  for (const namespace of namespaces) {
    while (true) {
      const { resources } = await coordinator.call(operator.listResources, { namespace, labels: {} });
      if (!resources.some((resource) => resource.deleting && deleted.some((ref) => isSame(ref, resource))))
        break;
      await pause(LOOK_AGAIN_MS, context.signal);
    }
  }
}

function isSame(
  ref: ResourceRef,
  { namespace, kind, name }: Pick<Resource, "namespace" | "kind" | "name">,
): boolean {
  return ref.namespace === namespace && ref.kind === kind && ref.name === name;
}
