import { LogOptions } from "@forage/proto/forage/agent/v1/agent";
import type { FlagValues } from "../command/flag.ts";
import { durationFlag } from "../duration-flag.ts";
import { CliError } from "../errors.ts";

export const LOG_FLAGS = {
  follow: { type: "switch", short: "f", help: "keep running and print new lines" },
  container: { type: "text", short: "c", hint: "NAME", help: "which container; the main one by default" },
  tail: { type: "text", hint: "LINES", help: "only so many lines from the end" },
  since: {
    type: "text",
    hint: "DURATION|TIME",
    help: "only lines that came since: 10m ago, or since a time such as 2026-01-31T08:00:00Z",
  },
  timestamps: { type: "switch", help: "begin each line with the time at which it came" },
  stream: {
    type: "text",
    choices: ["stdout", "stderr"],
    help: "only what was written to this one of the two; for pods with the annotation forage.dev/log-streams: separate",
  },
  previous: { type: "switch", short: "p", help: "of the terminated container before the present one" },
} as const;

export function logOptions(flags: FlagValues<typeof LOG_FLAGS>, nowMs: number): LogOptions {
  if (flags.follow && flags.previous)
    throw new CliError(
      "USAGE",
      "-f and -p contradict each other: a terminated container writes nothing more",
    );
  return LogOptions.fromPartial({
    follow: flags.follow,
    tailLines: parseTail(flags.tail),
    previous: flags.previous,
    timestamps: flags.timestamps,
    stream: flags.stream ?? "",
    ...(flags.since !== undefined && { since: toTimestamp(sinceMs(flags.since, nowMs)) }),
  });
}

function parseTail(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const lines = Number(text);
  if (!/^\d+$/.test(text) || lines > 0xffff_ffff)
    throw new CliError("USAGE", `--tail: "${text}" is not a number of lines`);
  return lines;
}

/**
 * Parses a duration such as `10m`, which means that long ago, or a time in RFC 3339 with a zone.
 */
function sinceMs(text: string, nowMs: number): number {
  if (!/^\d{4}-\d\d-\d\d[Tt]/.test(text)) return nowMs - durationFlag("--since", text);
  const ms = /([Zz]|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  throw new CliError("USAGE", `--since: "${text}" is not a time such as 2026-01-31T08:00:00Z`);
}

function toTimestamp(ms: number): { seconds: bigint; nanos: number } {
  const seconds = Math.floor(ms / 1000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1e6) };
}
