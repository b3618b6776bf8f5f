/** How long to wait after attempts that failed. */
export interface BackOff {
  readonly baseMs: number;
  readonly capMs: number;
}

/**
 * For a hostname: 2, 4, 8 … minutes. Public authorities allow five failed validations of a name an hour; a sixth attempt comes
 * after more than that. At most half a day, so that a mended name has its certificate by the next morning.
 */
export const hostnameBackOff: BackOff = { baseMs: 120_000, capMs: 12 * 3_600_000 };

/** For an issuer that can't be reached: an outage is over at some moment, and asking costs it little. */
export const issuerBackOff: BackOff = { baseMs: 30_000, capMs: 3_600_000 };

/** Up to so much longer, so that names that failed together don't come back together. */
const jitter = 0.25;

/**
 * Returns the wait after `failures` (from 1); `random` is in [0, 1). It is never shorter than the bare exponential, nor than
 * `askedMs`.
 */
export function waitMs(backOff: BackOff, failures: number, random: number, askedMs = 0): number {
  // 2 ** 40 of any base is above every cap, and Infinity would be no time.
  const doubled = backOff.baseMs * 2 ** Math.min(Math.max(failures - 1, 0), 40);
  return Math.round(Math.max(Math.min(doubled, backOff.capMs), askedMs) * (1 + jitter * random));
}
