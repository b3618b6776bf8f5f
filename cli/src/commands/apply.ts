import { type Coordinator, forest } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { type Bundle, readBundles } from "../manifest/bundles.ts";
import { locate } from "../manifest/locate.ts";
import { manifestError } from "../manifest/problem.ts";
import { readSources } from "../manifest/read-sources.ts";
import { pause } from "../pause.ts";
import { followRollouts } from "./follow-rollouts.ts";

export const manifestFlag = {
  kind: "list",
  short: "f",
  hint: "FILE|DIR|-",
  help: "manifest: a file, a directory's manifests, or - for standard input",
} as const;

/** The apply id makes it safe to send a bundle again when the answer to it was lost. */
const maxSends = 4;
const sendPauseMs = 500;

export const apply = defineCommand({
  name: "apply",
  summary: "Deploy manifests and follow the rollout until it has ended",
  details: `Exit codes: 0 done, 1 failed, 2 no node takes it, 3 rolled back, 4 the time given by --timeout is over.
Ctrl-C only stops watching; the rollout goes on.`,
  flags: {
    file: manifestFlag,
    detach: { kind: "switch", help: "don't follow the rollout, print its id" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const sources = await readSources(invocation.flags.file, context.world.stdin);
    const bundles = readBundles(sources, context.settings);
    return withCoordinator(context, async (coordinator) => {
      const rolloutIds = await sendAll(context, coordinator, bundles);
      if (!invocation.flags.detach) return followRollouts(context, coordinator, rolloutIds);
      printOne(
        context,
        () =>
          rolloutIds.map((rolloutId, index) => ({ rolloutId, namespace: bundles[index]?.request.namespace })),
        () => rolloutIds.map((id) => `${id}\n`).join(""),
      );
      return EXIT.ok;
    });
  },
});

/** In order. Should one be refused, those before it have been taken on, and the user is told so. */
async function sendAll(
  context: Context,
  coordinator: Coordinator,
  bundles: readonly Bundle[],
): Promise<string[]> {
  const rolloutIds: string[] = [];
  for (const bundle of bundles) {
    try {
      rolloutIds.push(await send(context, coordinator, bundle));
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

async function send(context: Context, coordinator: Coordinator, bundle: Bundle): Promise<string> {
  const applyId = bundle.request.applyId === "" ? context.world.randomId() : bundle.request.applyId;
  for (let sends = 1; ; sends++) {
    try {
      const { rolloutId } = await coordinator.call(forest.applyResources, { ...bundle.request, applyId });
      return rolloutId;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (error.violations.length > 0) throw explainViolations(bundle, error);
      // Where nothing listens from the start, the address is wrong rather than the answer lost.
      if (!error.passing || sends === maxSends || (!error.connected && sends === 1)) throw error;
      await pause(sendPauseMs * sends, context.signal);
    }
  }
}

/** The coordinator's complaints with the places in the manifest that they are about. */
export function explainViolations(bundle: Bundle, error: CallError): Error {
  const located = error.violations.map((violation) => ({ violation, problem: locate(bundle, violation) }));
  const problems = located.flatMap(({ problem }) => problem ?? []);
  if (problems.length === 0) return error;
  const rest = located.flatMap(({ violation: { field, description }, problem }) =>
    problem === undefined ? `  ${field}: ${description}` : [],
  );
  const { message } = manifestError(problems, "the coordinator refuses the manifest; nothing was changed:");
  return new CliError("MANIFEST", [message, ...rest].join("\n"), { cause: error });
}
