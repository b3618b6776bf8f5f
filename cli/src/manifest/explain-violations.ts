import type { CallError } from "../client/explain.ts";
import type { Bundle } from "./bundles.ts";
import { locate } from "./locate.ts";
import { ManifestError, manifestError } from "./problem.ts";

/**
 * Converts violations that the coordinator found to an error with their positions in the manifest.
 */
export function explainViolations(bundle: Bundle, error: CallError): Error {
  const located = error.violations.map((violation) => ({ violation, problem: locate(bundle, violation) }));
  const problems = located.flatMap(({ problem }) => problem ?? []);
  if (problems.length === 0) return error;
  const rest = located.flatMap(({ violation: { field, description }, problem }) =>
    problem === undefined ? `  ${field}: ${description}` : [],
  );
  const { message } = manifestError(problems, "the coordinator refuses the manifest; nothing was changed:");
  return new ManifestError([message, ...rest].join("\n"), problems, { cause: error });
}
