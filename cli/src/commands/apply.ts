import type { Coordinator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Bundle, Manifest } from "../manifest/bundles.ts";
import { assertServing } from "./assert-serving.ts";
import { followRollouts } from "./follow-rollouts.ts";
import { choosePruning, PRUNE_FLAG, type Pruning, pruneOf } from "./prune.ts";
import { putObjects } from "./put-objects.ts";
import { LOSSY_FLAG, MANIFEST_FLAG, readManifests } from "./read-manifests.ts";
import { sendBundle } from "./send-bundle.ts";

export const apply = defineCommand({
  name: "apply",
  summary: "Deploy manifests and follow the rollout until it has ended",
  details: `Removes resources that have the manifests' labels and that the manifests no longer name. On a terminal it asks first, and
removes only what it listed; --prune=yes removes them and --prune=no keeps them without a question. With --strict, the command fails if
60 s after the rollout a service has no ready endpoint or no gateway has applied a route.
Exit codes: 0 done, 1 failed, 2 a pod fits no node, 3 rolled back, 4 the time given by --timeout is over.
Ctrl-C only stops watching; the rollout continues.`,
  flags: {
    file: MANIFEST_FLAG,
    lossy: LOSSY_FLAG,
    detach: { type: "switch", help: "don't follow the rollout, print its id" },
    prune: PRUNE_FLAG,
    strict: {
      type: "switch",
      help: "wait until every service and route of the manifests serves, and fail if one does not",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    if (invocation.flags.strict && invocation.flags.detach)
      throw new CliError("USAGE", "--strict waits for the rollout, --detach does not: leave one out");
    const { bundles, objects } = await readManifests(context, invocation.flags);
    const { detach, strict, prune } = invocation.flags;
    const options = { detach, strict, prune: pruneOf(prune) };
    return withCoordinator(context, (coordinator) =>
      applyManifest(context, coordinator, { bundles, objects }, options),
    );
  },
});

export interface ApplyOptions {
  readonly detach: boolean;
  readonly strict: boolean;
  /** The value of `--prune`; undefined if the command should ask on a terminal. */
  readonly prune: boolean | undefined;
}

/** Applies a manifest, and follows its rollouts unless `detach` is set. */
export async function applyManifest(
  context: Context,
  coordinator: Coordinator,
  { bundles, objects }: Manifest,
  options: ApplyOptions,
): Promise<ExitCode> {
  const prune = await choosePruning(context, coordinator, bundles, options.prune);
  await putObjects(context, coordinator, objects);
  if (bundles.length === 0) {
    if (objects.length === 0) context.world.stderr.write("the manifests hold nothing to apply\n");
    return EXIT.ok;
  }
  const rolloutIds = await sendAll(context, coordinator, bundles, prune);
  if (!options.detach) {
    const code = await followRollouts(context, coordinator, rolloutIds);
    if (code === EXIT.ok && options.strict) await assertServing(context, coordinator, bundles);
    return code;
  }
  printOne(
    context,
    () => rolloutIds.map((rolloutId, index) => ({ rolloutId, namespace: bundles[index]?.request.namespace })),
    () => rolloutIds.map((id) => `${id}\n`).join(""),
  );
  return EXIT.ok;
}

/**
 * Sends the bundles in order. If one is refused, the earlier ones have been applied, as the message
 * states.
 */
async function sendAll(
  context: Context,
  coordinator: Coordinator,
  bundles: readonly Bundle[],
  prune: Pruning,
): Promise<string[]> {
  const rolloutIds: string[] = [];
  for (const bundle of bundles) {
    try {
      rolloutIds.push(await sendBundle(context, coordinator, bundle, prune));
    } catch (error) {
      for (const id of rolloutIds) {
        context.world.stderr.write(
          `rollout ${id} was started before the error: forage rollout status ${id}\n`,
        );
      }
      throw error;
    }
  }
  return rolloutIds;
}
