import { StoreError } from "../store-error.ts";

/** Returns a CORRUPT error with the problems and the advice. */
export function corrupt(problems: readonly string[], advice = ADVICE.refused, cause?: unknown): StoreError {
  const listed = problems.slice(0, PROBLEMS_LISTED_MAX).join("; ");
  const others = problems.length - PROBLEMS_LISTED_MAX;
  const more = others > 0 ? `; and ${others} more` : "";
  return new StoreError("CORRUPT", `the store is damaged: ${listed}${more}. ${advice}`, { cause });
}

export const ADVICE = {
  refused:
    "Its files were not changed. Restore a backup into an empty directory, or salvage the intact records, which lists the lost ones",
  serving:
    "The coordinator serves intact state from memory: make a backup now and restore it into an empty directory",
};

/** The limit of listed problems. They have to fit in a log line. */
const PROBLEMS_LISTED_MAX = 5;
