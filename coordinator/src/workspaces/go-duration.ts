/** Nanoseconds of each unit of a Go duration. */
const UNITS_NS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

/** The longest Go duration in nanoseconds, about 292 years. */
const MAX_NS = 2 ** 63;
/** The longest text that is parsed. `time.Duration` prints at most 22 characters. */
const MAX_LENGTH = 100;

/**
 * Parses a duration as Go's `time.ParseDuration` does, for example `1h30m`. Returns milliseconds,
 * or undefined for other texts.
 */
export function parseGoDuration(text: string): number | undefined {
  const match = text.length <= MAX_LENGTH ? /^([+-]?)(.+)$/.exec(text) : null;
  if (match === null) return undefined;
  const [, sign, rest = ""] = match;
  if (rest === "0") return 0;
  if (!/^((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let totalNs = 0;
  for (const [, amount = "", unit = ""] of rest.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g))
    totalNs += Number(amount) * (UNITS_NS[unit] ?? 0);
  if (!(totalNs < MAX_NS)) return undefined;
  return (sign === "-" ? -totalNs : totalNs) / 1e6;
}

/** Formats milliseconds as Go prints a duration: `1h30m0s`, `2m0s`, `1.5s`, `500ms`. */
export function formatGoDuration(ms: number): string {
  if (ms === 0) return "0s";
  if (ms < 1000) return `${ms}ms`;
  const totalMs = Math.round(ms);
  const [hours, minutes] = [Math.floor(totalMs / 3_600_000), Math.floor(totalMs / 60_000) % 60];
  const seconds = `${(totalMs % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

/** Formats milliseconds as `HHhMMm`, as in time-out conditions. */
export function formatHoursMinutes(ms: number): string {
  const minutes = Math.floor(Math.max(0, ms) / 60_000);
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}h${String(minutes % 60).padStart(2, "0")}m`;
}
