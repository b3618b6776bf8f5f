import { type BackOff, backOffMs } from "@forage/common/back-off";

/**
 * For a hostname: 2, 4, 8 … minutes. Public authorities allow five failed validations of a name an hour; a sixth attempt comes
 * after more than that. At most half a day, so that a mended name has its certificate by the next morning.
 */
export const hostnameBackOff: BackOff = { baseMs: 120_000, capMs: 12 * 3_600_000 };

/** For an issuer that can't be reached: an outage is over at some moment, and asking costs it little. */
export const issuerBackOff: BackOff = { baseMs: 30_000, capMs: 3_600_000 };

/** The largest random share of a delay, so that names that failed together are retried apart. */
const jitter = 0.25;

/**
 * Returns the wait after `failures` (from 1); `random` is in [0, 1). It is never shorter than the bare exponential, nor than
 * `askedMs`.
 */
export function waitMs(backOff: BackOff, failures: number, random: number, askedMs = 0): number {
  return Math.round(Math.max(backOffMs(failures, backOff), askedMs) * (1 + jitter * random));
}
