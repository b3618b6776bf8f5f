const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Formats a duration with one unit: "5 s", "12 min", "3 h", "9 d". */
export function duration(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.max(0, Math.floor(ms / SECOND_MS))} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return `${Math.floor(ms / DAY_MS)} d`;
}

export function age(ms: number): string {
  return ms === 0 ? "" : duration(Date.now() - ms);
}

/** Describes how long ago, or in how long, a timestamp is. */
export function ago(time: string | undefined): string {
  if (time === undefined) return "";
  const ms = Date.now() - Date.parse(time);
  return ms < 0 ? `in ${duration(-ms)}` : `${duration(ms)} ago`;
}

/** Describes how long ago, or in how long, a time is; "" for undefined. */
export function agoMs(ms: number | undefined): string {
  return ms === undefined || ms === 0 ? "" : ago(new Date(ms).toISOString());
}

/**
 * Formats times, in seconds since the epoch, as labels: "14:05", or "14:05:30" if the step is less
 * than a minute.
 */
export function clockTimes(seconds: readonly number[], stepSeconds: number): string[] {
  const format = new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(stepSeconds < 60 && { second: "2-digit" }),
  });
  return seconds.map((time) => format.format(time * 1000));
}

export function dateTime(time: string | undefined): string {
  if (time === undefined) return "";
  return new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count: number): string {
  const power = count < 1 ? 0 : Math.min(Math.floor(Math.log2(count) / 10), UNITS.length - 1);
  const amount = count / 1024 ** power;
  return `${amount >= 100 || power === 0 ? amount.toFixed(0) : amount.toFixed(1)} ${UNITS[power]}`;
}

export function cores(milli: number): string {
  if (milli >= 10_000) return (milli / 1000).toFixed(0);
  const isTiny = milli > 0 && milli < 10;
  return (milli / 1000).toFixed(isTiny ? 3 : milli < 1000 ? 2 : 1);
}

export function percent(part: number, whole: number): number {
  return whole > 0 ? Math.round((part / whole) * 100) : 0;
}

/** Formats a number with separators: "9,900". */
export function count(value: number): string {
  return value.toLocaleString("en");
}

export function plural(number: number, one: string): string {
  return `${count(number)} ${one}${number === 1 ? "" : "s"}`;
}
