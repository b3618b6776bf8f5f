import { type BackOff, backOffMs } from "@forage/common/back-off";

/**
 * The back-off of a hostname: 2, 4, 8 … minutes. Public authorities allow five failed validations of a name an hour; the sixth
 * attempt comes later than that. Half a day at most, so that a corrected name has its certificate by the next morning.
 */
export const HOSTNAME_BACK_OFF: BackOff = { baseMs: 120_000, capMs: 12 * 3_600_000 };

/** The back-off of an issuer that can't be reached. Outages end, and an attempt costs the issuer little. */
export const ISSUER_BACK_OFF: BackOff = { baseMs: 30_000, capMs: 3_600_000 };

/** The largest random share of a delay, so that names that failed together are retried apart. */
const JITTER = 0.25;

/**
 * Returns the wait after `failures` (from 1); `random` is in [0, 1). It is never shorter than the bare exponential, nor than
 * `askedMs`.
 */
export function waitMs(backOff: BackOff, failures: number, random: number, askedMs = 0): number {
  return Math.round(Math.max(backOffMs(failures, backOff), askedMs) * (1 + JITTER * random));
}
