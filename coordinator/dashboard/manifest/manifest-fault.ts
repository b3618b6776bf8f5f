import type { Problem } from "@forage/cli/manifest/problem";
import { ApiError } from "../data/api-error.ts";

/**
 * The most problems shown: one broken template must not push the first and most useful ones off the
 * screen.
 */
const MAX_SHOWN = 20;

/** Returns the error of an invalid manifest, with the position of each problem. */
export function manifestFault(problems: readonly Problem[], heading: string): ApiError {
  const violations = problems
    .slice(0, MAX_SHOWN)
    .map((problem) => ({ field: placeOf(problem), description: problem.message }));
  const rest = problems.length - MAX_SHOWN;
  if (rest > 0) violations.push({ field: "", description: `and ${rest} more` });
  return new ApiError("INVALID_ARGUMENT", heading, violations);
}

/** Formats the position of a problem, such as `line 3, column 5: spec.template`. */
export function placeOf({ position: { line, column }, path }: Problem): string {
  const place = `line ${line}, column ${column}`;
  return path === "" ? place : `${place}: ${path}`;
}
