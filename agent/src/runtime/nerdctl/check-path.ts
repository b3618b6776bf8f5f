import { RuntimeError } from "../runtime.ts";

/**
 * Returns the path if it can be part of an option. nerdctl splits options at commas and colons and supports no quoting.
 */
export function checkPath(what: string, path: string): string {
  if (path.startsWith("/") && !/[,:"\n\0]/.test(path)) return path;
  throw new RuntimeError(
    "START_FAILED",
    `${what} path ${JSON.stringify(path)}: must be absolute, without comma, colon, quote or line break`,
    { retryable: false },
  );
}
