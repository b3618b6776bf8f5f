import { CliError } from "../errors.ts";

/**
 * Parses `KEY=VALUE` values of a repeated flag, each with one or more pairs separated by commas.
 * Throws USAGE if a key has two values.
 */
export function parseLabels(flag: string, given: readonly string[]): Record<string, string> {
  const labels = new Map<string, string>();
  for (const text of given.flatMap((each) => each.split(","))) {
    const split = text.indexOf("=");
    const key = text.slice(0, split);
    const value = text.slice(split + 1);
    if (split < 1) throw new CliError("USAGE", `${flag}: "${text}" is not KEY=VALUE`);
    if (labels.has(key) && labels.get(key) !== value)
      throw new CliError("USAGE", `${flag}: "${key}" is given twice`);
    labels.set(key, value);
  }
  return Object.fromEntries(labels);
}
