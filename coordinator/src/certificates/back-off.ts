import { type BackOff, backOffMs } from "@forage/common/back-off";

/**
 * The back-off of a hostname: 2, 4, 8 … minutes, so that public authorities' limit of five failed
 * validations an hour is not exceeded. It is at most half a day, so that a corrected name has its
 * certificate by the next morning.
 */
export const HOSTNAME_BACK_OFF: BackOff = { baseMs: 120_000, capMs: 12 * 3_600_000 };

/** The back-off of an unreachable issuer. Outages end, and an attempt costs the issuer little. */
export const ISSUER_BACK_OFF: BackOff = { baseMs: 30_000, capMs: 3_600_000 };

/** The largest random share of a delay, which spreads retries of names that failed together. */
const JITTER = 0.25;

/**
 * Returns the delay in milliseconds after `failures` (from 1) failures; `random` is in [0, 1). It
 * is never shorter than the exponential back-off, nor than `requestedMs`.
 */
export function waitMs(backOff: BackOff, failures: number, random: number, requestedMs = 0): number {
  return Math.round(Math.max(backOffMs(failures, backOff), requestedMs) * (1 + JITTER * random));
}
