import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import type { Coordinator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { annotate, withoutAnnotations } from "../edit/annotate.ts";
import { openEditor } from "../edit/open-editor.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type Bundle, readBundles } from "../manifest/bundles.ts";
import { ManifestError } from "../manifest/problem.ts";
import { writeResource } from "../manifest/write-manifest.ts";
import { renderDocument } from "../output/document.ts";
import { findResource } from "./find.ts";
import { followRollouts } from "./follow-rollouts.ts";
import { kindOf } from "./prune.ts";
import { parseResource } from "./reference.ts";
import { sendChanged } from "./send-changed.ts";

export const edit = defineCommand({
  name: "edit",
  summary: "Change a deployed resource in an editor",
  details: `Opens its manifest in VISUAL, EDITOR or vi, and applies the saved text. Until the manifest is accepted, the editor shows it again with
each problem below its line. The command ends when nothing is changed. A file keeps the text that could not be applied.
The rollout is followed until it has ended; exit codes are those of apply.`,
  operands: [{ name: "KIND/NAME", required: true, help: "which resource" }],
  flags: { detach: { type: "switch", help: "don't follow the rollout, print its id" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const reference = parseResource(invocation.operands[0] ?? "");
    return withCoordinator(context, async (coordinator) => {
      const read = await findResource(coordinator, context.settings.namespace, reference);
      const rolloutId = await editUntilApplied(context, coordinator, read);
      if (rolloutId === undefined) {
        context.world.stderr.write("nothing was changed\n");
        return EXIT.ok;
      }
      return invocation.flags.detach
        ? printId(context, rolloutId)
        : followRollouts(context, coordinator, [rolloutId], { single: true });
    });
  },
});

function printId(context: Context, rolloutId: string): ExitCode {
  printOne(
    context,
    () => ({ rolloutId, namespace: context.settings.namespace }),
    () => `${rolloutId}\n`,
  );
  return EXIT.ok;
}

/**
 * Opens the editor until the manifest is accepted. Returns the rollout's id; undefined if the user
 * changed nothing.
 */
async function editUntilApplied(
  context: Context,
  coordinator: Coordinator,
  read: Resource,
): Promise<string | undefined> {
  const { world, signal } = context;
  const directory = mkdtempSync(join(tmpdir(), "forage-edit-"));
  const path = join(directory, `${read.kind}-${read.name}.yaml`);
  const original = manifestText(read);
  let before = original;
  let failure: CliError | undefined;
  writeFileSync(path, original, { mode: 0o600 });
  try {
    for (;;) {
      await openEditor(path, world.env, signal);
      const text = withoutAnnotations(readFileSync(path, "utf8"));
      if (text === before) {
        if (failure !== undefined) throw failure;
        rmSync(directory, { recursive: true });
        return undefined;
      }
      before = text;
      try {
        const rolloutId = await send(context, coordinator, read, path, text);
        rmSync(directory, { recursive: true });
        return rolloutId;
      } catch (error) {
        failure = correctable(error, world.stdin.isTTY === true);
        const problems = failure instanceof ManifestError ? failure.problems : [];
        writeFileSync(path, annotate(text, failure.message, problems));
      }
    }
  } catch (error) {
    // The editor may fail after it has saved the text.
    if (withoutAnnotations(readFileSync(path, "utf8")) !== original) throw withPath(error, path);
    rmSync(directory, { recursive: true });
    throw error;
  }
}

function manifestText({ namespace, labels, spec, kind, name }: Resource): string {
  if (spec === undefined) throw new CliError("REFUSED", `${kind}/${name} has no manifest`);
  const head = "# Save to apply this. Leave the editor without a change to cancel.\n";
  return head + renderDocument("yaml", { namespace, labels, resources: [writeResource(spec)] });
}

async function send(
  context: Context,
  coordinator: Coordinator,
  read: Resource,
  path: string,
  text: string,
): Promise<string> {
  const bundles = readBundles([{ name: path, text }], context.settings);
  const bundle = sameResource(bundles, read);
  const [resource] = bundle.request.resources;
  if (resource === undefined) throw new CliError("MANIFEST", "the manifest has no resource");
  return sendChanged(context, coordinator, read, { resource, labels: bundle.request.labels, bundle });
}

function sameResource(bundles: readonly Bundle[], { namespace, kind, name }: Resource): Bundle {
  const [bundle, ...others] = bundles;
  const [resource, ...more] = bundle?.request.resources ?? [];
  const isSame =
    bundle?.request.namespace === namespace &&
    resource?.name === name &&
    kindOf(resource.spec?.$case) === kind;
  if (bundle !== undefined && isSame && others.length + more.length === 0) return bundle;
  throw new CliError(
    "MANIFEST",
    `the manifest must hold ${kind}/${name} in namespace "${namespace}" and nothing else: \`forage apply -f FILE\` applies others`,
  );
}

/** Returns the error if the user can correct the manifest in the editor; throws it otherwise. */
function correctable(error: unknown, hasTerminal: boolean): CliError {
  const isAboutManifest = error instanceof CliError && (error.code === "MANIFEST" || isRejection(error));
  if (isAboutManifest && hasTerminal) return error;
  throw error;
}

/**
 * Reports whether the coordinator refused the content of the manifest, for example because a quota
 * is exhausted.
 */
function isRejection(error: CliError): boolean {
  return error instanceof CallError && error.code === "REFUSED" && !error.passing;
}

/** Adds the path of the text that was not applied to the error. */
function withPath(error: unknown, path: string): unknown {
  if (!(error instanceof CliError)) return error;
  const message = `${error.message}\nthe edited text is kept in ${path}`;
  return new CliError(error.code, message, { cause: error, exitCode: error.exitCode });
}
