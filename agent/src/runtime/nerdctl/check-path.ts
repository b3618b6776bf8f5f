import { RuntimeError } from "../runtime.ts";

/** The path, if it can be part of an option: nerdctl splits these at commas and colons and knows no quoting. */
export function checkPath(what: string, path: string): string {
  if (path.startsWith("/") && !/[,:"\n\0]/.test(path)) return path;
  throw new RuntimeError(
    "START_FAILED",
    `${what} path ${JSON.stringify(path)}: must be absolute, without comma, colon, quote or line break`,
    { retryable: false },
  );
}
