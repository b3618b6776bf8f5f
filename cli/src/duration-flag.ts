import { parseDurationMs } from "./duration.ts";
import { CliError } from "./errors.ts";

/** Parses the duration in a flag. Throws USAGE if it is invalid. */
export function durationFlag(flag: string, text: string): number {
  const ms = parseDurationMs(text);
  if (ms === undefined)
    throw new CliError("USAGE", `${flag}: "${text}" is not a duration such as 30s, 5m or 1h30m`);
  return ms;
}

/** Parses the value of `--timeout`; undefined if the flag is absent. */
export function timeoutOf(text: unknown): number | undefined {
  return typeof text === "string" ? durationFlag("--timeout", text) : undefined;
}
