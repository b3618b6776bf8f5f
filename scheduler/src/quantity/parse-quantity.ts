import { SchedulerError } from "../scheduler-error.ts";

/** Billionths per unit, the finest step of Kubernetes' notation. */
export const NANO_PER_UNIT = 1_000_000_000n;

// The largest integer up to which a double represents every integer: 8 PiB of memory, or 9e12 cpus in milli-cpus.
// Larger amounts are rejected.
const EXACT_MAX = BigInt(Number.MAX_SAFE_INTEGER);

// Longer numbers are rejected before any arithmetic, so that a hostile string is cheap.
const LENGTH_MAX = 64;
const EXPONENT_MAX = 30;

// Few enough that all intermediate results are exact in a double.
const PLAIN_DIGITS = 6;
const DIGIT_ZERO = 48;
const KIBI = 1024;
const MEBI = 1024 * KIBI;
const GIBI = 1024 * MEBI;

const NANO_PER_SUFFIX: ReadonlyMap<string, bigint> = new Map([
  ["n", 1n],
  ["u", 1_000n],
  ["m", 1_000_000n],
  ["", NANO_PER_UNIT],
  ["k", 1_000n * NANO_PER_UNIT],
  ["M", 1_000_000n * NANO_PER_UNIT],
  ["G", 10n ** 9n * NANO_PER_UNIT],
  ["T", 10n ** 12n * NANO_PER_UNIT],
  ["P", 10n ** 15n * NANO_PER_UNIT],
  ["E", 10n ** 18n * NANO_PER_UNIT],
  ["Ki", 2n ** 10n * NANO_PER_UNIT],
  ["Mi", 2n ** 20n * NANO_PER_UNIT],
  ["Gi", 2n ** 30n * NANO_PER_UNIT],
  ["Ti", 2n ** 40n * NANO_PER_UNIT],
  ["Pi", 2n ** 50n * NANO_PER_UNIT],
  ["Ei", 2n ** 60n * NANO_PER_UNIT],
]);

const GRAMMAR = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([eE])([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i))?$/;

/**
 * Parses Kubernetes' quantity notation exactly: a decimal number, then one of `n u m k M G T P E Ki Mi Gi Ti Pi Ei` or
 * an exponent (`1e3`). Returns billionths of the unit, with finer amounts rounded away from zero. @throws
 * SchedulerError `invalid_quantity`.
 */
export function parseQuantity(text: string): bigint {
  const match = text.length <= LENGTH_MAX ? GRAMMAR.exec(text) : null;
  const whole = match?.[2] ?? "";
  const fraction = match?.[3] ?? "";
  if (match === null || whole.length + fraction.length === 0) throw invalid(text);
  const digits = BigInt(whole + fraction);
  const magnitude = roundUp(
    digits * scaleOf(match, text),
    10n ** BigInt(fraction.length + exponentBelow(match)),
  );
  return match[1] === "-" ? -magnitude : magnitude;
}

/**
 * Like `amountOf`, for the plain notation of nearly all quantities (`2`, `250m` of cpu, `512Mi`), at a tenth of the
 * cost. Returns -1 for anything else.
 */
export function plainAmountOf(resource: string, text: string): number {
  let amount = 0;
  let at = 0;
  for (; at < text.length && at < PLAIN_DIGITS; at++) {
    const digit = text.charCodeAt(at) - DIGIT_ZERO;
    if (digit < 0 || digit > 9) break;
    amount = amount * 10 + digit;
  }
  if (at === 0) return -1;
  const cpu = resource === "cpu";
  if (at === text.length) return cpu ? amount * 1000 : amount;
  if (cpu) return at === text.length - 1 && text[at] === "m" ? amount : -1;
  if (at !== text.length - 2 || text[at + 1] !== "i") return -1;
  const unit = text[at];
  return unit === "M" ? amount * MEBI : unit === "G" ? amount * GIBI : unit === "K" ? amount * KIBI : -1;
}

/** Parses an amount of cpu into thousandths, rounded up. */
export function milliCpuOf(text: string): number {
  return exact(roundUp(nonNegative(text), 1_000_000n), text);
}

/** Parses an amount of bytes, devices or pods into whole units, rounded up. */
export function wholeUnitsOf(text: string): number {
  return exact(roundUp(nonNegative(text), NANO_PER_UNIT), text);
}

/** Parses a quantity into the scheduler's units for the resource: thousandths for cpu, else whole units; rounded up. */
export function amountOf(resource: string, text: string): number {
  return resource === "cpu" ? milliCpuOf(text) : wholeUnitsOf(text);
}

function nonNegative(text: string): bigint {
  const nano = parseQuantity(text);
  if (nano < 0n) throw new SchedulerError("invalid_quantity", `quantity "${text}" is negative`);
  return nano;
}

function scaleOf(match: RegExpExecArray, text: string): bigint {
  if (match[4] === undefined) return NANO_PER_SUFFIX.get(match[6] ?? "") ?? NANO_PER_UNIT;
  const exponent = Number(match[5]);
  if (Math.abs(exponent) > EXPONENT_MAX) throw invalid(text);
  return exponent > 0 ? NANO_PER_UNIT * 10n ** BigInt(exponent) : NANO_PER_UNIT;
}

function exponentBelow(match: RegExpExecArray): number {
  return match[4] === undefined ? 0 : Math.max(0, -Number(match[5]));
}

function roundUp(amount: bigint, divisor: bigint): bigint {
  return (amount + divisor - 1n) / divisor;
}

function exact(amount: bigint, text: string): number {
  if (amount > EXACT_MAX)
    throw new SchedulerError("quantity_out_of_range", `quantity "${text}" is too large`);
  return Number(amount);
}

function invalid(text: string): SchedulerError {
  return new SchedulerError("invalid_quantity", `"${text.slice(0, LENGTH_MAX)}" is not a quantity`);
}
