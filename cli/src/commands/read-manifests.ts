import type { Context } from "../context.ts";
import { type Manifest, readManifest } from "../manifest/bundles.ts";
import { formatProblem } from "../manifest/problem.ts";
import { readSources } from "../manifest/read-sources.ts";
import { plainText } from "../output/plain-text.ts";

export const MANIFEST_FLAG = {
  type: "list",
  short: "f",
  hint: "FILE|DIR|-",
  help: "manifest, Kubernetes manifest or Compose file: a file, a directory's manifests, or - for standard input",
} as const;

export const LOSSY_FLAG = {
  type: "switch",
  help: "leave out what can't be carried over from Kubernetes or Compose, with a warning instead of an error",
} as const;

export interface ManifestFlags {
  readonly file: readonly string[];
  readonly lossy: boolean;
}

/**
 * Reads manifests, Kubernetes manifests and Compose files. Throws all problems together. Omitted
 * parts are reported as warnings on standard error.
 */
export async function readManifests(
  { world, settings }: Context,
  { file, lossy }: ManifestFlags,
): Promise<Manifest> {
  const sources = await readSources(file, world.stdin);
  return readManifest(sources, {
    ...settings,
    conversion: {
      env: world.env,
      onLoss: lossy
        ? (problem) => void world.stderr.write(`warning: ${plainText(formatProblem(problem))}\n`)
        : undefined,
    },
  });
}
