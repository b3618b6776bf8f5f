import { parseDurationMs } from "./duration.ts";
import { CliError } from "./errors.ts";

/** Parses the value of a flag that takes a duration; throws USAGE for anything else. */
export function durationFlag(flag: string, text: string): number {
  const ms = parseDurationMs(text);
  if (ms === undefined)
    throw new CliError("USAGE", `${flag}: "${text}" is no duration such as 30s, 5m or 1h30m`);
  return ms;
}

/** Parses the value of `--timeout`; undefined when the flag is absent. */
export function timeoutOf(text: unknown): number | undefined {
  return typeof text === "string" ? durationFlag("--timeout", text) : undefined;
}
