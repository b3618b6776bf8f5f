import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { type Address, addressesOf } from "../launch/addresses.ts";
import { launchManifest, RUN_LABEL } from "../launch/manifest.ts";
import type { Environment, Mapping } from "../launch/parse.ts";
import { LAUNCH_FLAGS, readLaunch } from "../launch/read-launch.ts";
import { type Bundle, readBundles } from "../manifest/bundles.ts";
import { renderDocument } from "../output/document.ts";
import { type Column, renderTable } from "../output/table.ts";
import type { World } from "../world.ts";
import { followRollouts } from "./follow-rollouts.ts";
import { parseLabels } from "./labels.ts";
import { parseEnv, readBytes } from "./object-data.ts";
import { choosePruning, kindOf, PRUNE_FLAG, pruneOf } from "./prune.ts";
import { sendBundle } from "./send-bundle.ts";

export const run = defineCommand({
  name: "run",
  summary: "Deploy an image without a manifest, and follow the rollout until it has ended",
  details: `Makes a container service, a service if a port is published, and a route for each hostname, all with the label run=NAME.
The same NAME again changes them, and removes what the new command line leaves out. Resources that were deployed in another way are not changed.
--dry-run prints the manifest for apply, and sends nothing. Exit codes are those of apply.`,
  operands: [
    { name: "IMAGE", required: true, help: "the image" },
    { name: "ARG", repeated: true, afterDashes: true, help: "the arguments, instead of the image's" },
  ],
  flags: {
    ...LAUNCH_FLAGS,
    label: { type: "list", short: "l", hint: "KEY=VALUE", help: "label of all that it makes" },
    "dry-run": { type: "switch", help: "print the manifest (-o yaml or json), and send nothing" },
    detach: { type: "switch", help: "don't follow the rollout, print its id" },
    prune: PRUNE_FLAG,
  },
  run: async (invocation) => {
    const { flags, operands, afterDashes = [] } = invocation;
    const context = contextOf(invocation);
    const { world, settings, format } = context;
    const labels = parseLabels("--label", flags.label);
    if (Object.hasOwn(labels, RUN_LABEL))
      throw new CliError("USAGE", `--label: "${RUN_LABEL}" is set to the name by this command`);
    const launch = readLaunch({
      image: operands[0] ?? "",
      args: afterDashes,
      flags,
      namespace: settings.namespace,
      labels,
      env: world.env,
      fileVariables: await readEnvFiles(flags["env-file"], world),
    });
    const manifest = launchManifest(launch);
    const bundle = bundleOf(manifest, settings);
    if (flags["dry-run"]) {
      world.stdout.write(renderDocument(format === "json" ? "json" : "yaml", manifest));
      return EXIT.ok;
    }
    return withCoordinator(context, async (coordinator) => {
      await assertOwn(coordinator, bundle, launch.name);
      const prune = await choosePruning(context, coordinator, [bundle], pruneOf(flags.prune));
      const rolloutId = await sendBundle(context, coordinator, bundle, prune);
      if (flags.detach) {
        printOne(
          context,
          () => ({ rolloutId, namespace: settings.namespace }),
          () => `${rolloutId}\n`,
        );
        return EXIT.ok;
      }
      const code = await followRollouts(context, coordinator, [rolloutId], { single: true });
      if (code === EXIT.ok) await printAddresses(context, coordinator, launch.name);
      return code;
    });
  },
});

/** Parses the manifest with the checks of `forage apply`. */
function bundleOf(manifest: Mapping, settings: Context["settings"]): Bundle {
  const source = { name: "the manifest of --dry-run", text: renderDocument("yaml", manifest) };
  const [bundle] = readBundles([source], settings);
  if (bundle === undefined) throw new Error("the manifest has no bundle");
  return bundle;
}

async function readEnvFiles(files: readonly string[], { stdin }: World): Promise<Environment[]> {
  if (files.filter((file) => file === "-").length > 1)
    throw new CliError("USAGE", "standard input can be read only once");
  const variables: Environment[] = [];
  for (const file of files)
    for (const [name, value] of parseEnv(file, (await readBytes(file, stdin)).toString()))
      variables.push({ name, source: { value } });
  return variables;
}

/**
 * Throws if a resource of the bundle exists that was not created by an earlier run of the same
 * name.
 */
async function assertOwn(coordinator: Coordinator, { request }: Bundle, name: string): Promise<void> {
  const { namespace } = request;
  const { resources } = await coordinator.call(operator.listResources, { namespace, labels: {} });
  const foreign = resources.find(
    ({ kind, name: other, labels }) =>
      labels[RUN_LABEL] !== name &&
      request.resources.some((each) => each.name === other && kindOf(each.spec?.$case) === kind),
  );
  if (foreign === undefined) return;
  throw new CliError(
    "REFUSED",
    `${foreign.kind}/${foreign.name} exists in namespace "${namespace}" and was not made by this command under this name: choose another name with --name`,
  );
}

async function printAddresses(context: Context, coordinator: Coordinator, name: string): Promise<void> {
  const { world, format, paint, settings } = context;
  if (format !== "table" && format !== "wide") return;
  const request = { namespace: settings.namespace, labels: { [RUN_LABEL]: name } };
  const { resources } = await coordinator.call(operator.listResources, request);
  const hasNodePorts = resources.some(({ nodePorts }) => nodePorts.length > 0);
  const { nodes } = hasNodePorts ? await coordinator.call(operator.listNodes, {}) : { nodes: [] };
  const addresses = addressesOf(resources, nodes);
  if (addresses.length === 0) return;
  const columns: readonly Column<Address>[] = [
    { title: "ADDRESS", value: ({ address }) => address },
    { title: "REACHED", value: ({ reach }) => reach },
  ];
  world.stdout.write(`\n${renderTable(columns, addresses, { wide: false, paint })}`);
}
