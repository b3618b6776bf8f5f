import { Cron } from "croner";

/** The due times of a validated schedule, in milliseconds since the epoch. */
export interface Schedule {
  /** Returns the first due time after the given one. Undefined: there is none. */
  next(afterMs: number): number | undefined;
  /** Returns the last due time up to and including the given one. Undefined: there is none. */
  last(untilMs: number): number | undefined;
}

const NICKNAMES: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};
interface FieldRange {
  readonly min: number;
  readonly max: number;
  /** The names of values. The first stands for `min`. */
  readonly names?: readonly string[];
}

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/** The fields in order: minute, hour, day of month, month, day of week. */
const RANGES: readonly FieldRange[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: WEEKDAYS },
];

/**
 * Parses a schedule in the local time of the time zone. Times of day that a clock change skips are due right after the
 * change; repeated ones are due once. Intervals ("*", "*" with a step) follow elapsed time.
 */
export function scheduleOf(schedule: string, timezone: string): Schedule {
  const cron = new Cron(plain(schedule), {
    timezone,
    mode: "5-part",
    paused: true,
    // Lists and ranges of hours are times of day as well.
    fixedTimeRule: "no-wildcard",
  });
  return {
    next: (afterMs) => cron.nextRun(new Date(afterMs))?.getTime(),
    last: (untilMs) => cron.previousRuns(1, new Date(untilMs + 1))[0]?.getTime(),
  };
}

/**
 * Rewrites a schedule into the subset that croner and Kubernetes interpret alike: lists of numbers, "*", and for times of
 * day also "*" with a step.
 */
function plain(schedule: string): string {
  const fields = (NICKNAMES[schedule] ?? schedule).trim().replaceAll("?", "*").split(/\s+/);
  return RANGES.map((range, index) => plainField(fields[index] ?? "*", range, index < 2)).join(" ");
}

function plainField(field: string, range: FieldRange, isTimeOfDay: boolean): string {
  const parts = field.split(",").map((part) => partOf(part, range));
  // A field with "*" matches every value, whatever else it lists.
  if (parts.some(({ any, step }) => any && step === 1)) return "*";
  const [first] = parts;
  if (isTimeOfDay && parts.length === 1 && first?.any && first.step <= range.max) return `*/${first.step}`;
  return [...new Set(parts.flatMap(valuesOf))].join(",");
}

interface Part {
  /** Whether the part is "*". */
  readonly any: boolean;
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

function partOf(part: string, { min, max, names = [] }: FieldRange): Part {
  const [base = "", step] = part.split("/");
  const any = base === "*";
  const [from = min, to = any || step !== undefined ? max : from] = any
    ? []
    : base.split("-").map((text) => {
        const named = names.indexOf(text.toUpperCase());
        return named < 0 ? Number(text) : min + named;
      });
  return { any, from, to, step: Number(step ?? 1) };
}

function valuesOf({ from, to, step }: Part): number[] {
  const values: number[] = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}
