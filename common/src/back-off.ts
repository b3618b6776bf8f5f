/** Delays after consecutive failures: `baseMs` after the first, doubled after each further one, at most `capMs`. */
export interface BackOff {
  readonly baseMs: number;
  readonly capMs: number;
}

// 2^31 times any base is above every cap; larger powers could overflow to Infinity.
const MAX_DOUBLINGS = 31;

/** Returns the delay in milliseconds after the n-th consecutive failure, n from 1. */
export function backOffMs(failures: number, { baseMs, capMs }: BackOff): number {
  return Math.min(capMs, baseMs * 2 ** Math.min(MAX_DOUBLINGS, Math.max(0, failures - 1)));
}
