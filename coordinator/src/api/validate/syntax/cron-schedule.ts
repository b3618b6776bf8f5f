interface CronField {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The names of values. The first stands for `min`. */
  readonly names: readonly string[];
}

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const FIELDS: readonly CronField[] = [
  { name: "minute", min: 0, max: 59, names: [] },
  { name: "hour", min: 0, max: 23, names: [] },
  { name: "day of month", min: 1, max: 31, names: [] },
  { name: "month", min: 1, max: 12, names: MONTHS },
  { name: "day of week", min: 0, max: 7, names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] },
];
const SHORTHANDS = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const DAYS_OF_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** The limit of a schedule in characters. */
const MAX_LENGTH = 256;

/**
 * Returns what is wrong with the schedule. Undefined: it is valid. The notation is Kubernetes': five fields with lists,
 * ranges, steps and names.
 */
export function cronScheduleProblem(schedule: string): string | undefined {
  if (schedule.trim() === "") return "must not be empty";
  if (schedule.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`;
  if (/^(CRON_)?TZ=/.test(schedule)) return "must not contain a time zone; use the field timezone";
  if (schedule.startsWith("@")) {
    return SHORTHANDS.includes(schedule)
      ? undefined
      : `must be five fields or one of ${SHORTHANDS.join(", ")}`;
  }
  const texts = schedule.trim().split(/\s+/);
  if (texts.length !== FIELDS.length)
    return `must have five fields (minute, hour, day of month, month, day of week), has ${texts.length}`;
  const parsed = FIELDS.map((field, index) => parseField(texts[index] ?? "", field));
  const problem = parsed.find((result) => typeof result === "string");
  if (typeof problem === "string") return problem;
  const [, , days, monthNumbers] = parsed as Set<number>[];
  const anyWeekday = (texts[4] ?? "").split(",").some((part) => /^[*?](\/0?1)?$/.test(part));
  // If the day of the week is restricted, it alone makes the schedule due, independent of the day of the month.
  return anyWeekday && !dateExists(days, monthNumbers) ? "selects a day that doesn't exist" : undefined;
}

function parseField(text: string, field: CronField): Set<number> | string {
  const values = new Set<number>();
  for (const part of text.split(",")) {
    const problem = addPart(part, field, values);
    if (problem !== undefined) return `${field.name} "${text}" ${problem}`;
  }
  return values;
}

function addPart(part: string, field: CronField, values: Set<number>): string | undefined {
  const [, base = "", , digits] = /^([^/]*)(\/(.*))?$/.exec(part) ?? [];
  const step = digits === undefined ? 1 : Number(/^\d{1,2}$/.test(digits) ? digits : 0);
  if (step < 1) return "has a step that is not a number from 1 to 99";
  const range = parseRange(base, digits !== undefined, field);
  if (typeof range === "string") return range;
  for (let value = range.from; value <= range.to; value += step) values.add(value);
  return undefined;
}

function parseRange(
  base: string,
  stepped: boolean,
  field: CronField,
): { readonly from: number; readonly to: number } | string {
  if (base === "*" || base === "?") return { from: field.min, to: field.max };
  const ends = base.split("-").map((text) => numberOf(text, field));
  const [from, to = stepped ? field.max : from] = ends;
  if (ends.length > 2 || from === undefined || to === undefined || ends.includes(undefined)) {
    const named = field.names.length === 0 ? "" : `, or ${field.names[0]} to ${field.names.at(-1)}`;
    return `must be '*', numbers from ${field.min} to ${field.max}${named}, with ',', '-' and '/'`;
  }
  return from <= to ? { from, to } : "has a range that ends before it begins";
}

function numberOf(text: string, { names, min, max }: CronField): number | undefined {
  const named = names.indexOf(text.toUpperCase());
  if (named >= 0) return min + named;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

function dateExists(days: Set<number> | undefined, monthNumbers: Set<number> | undefined): boolean {
  const first = Math.min(...(days ?? []));
  return [...(monthNumbers ?? [])].some((month) => first <= (DAYS_OF_MONTH[month - 1] ?? 0));
}
