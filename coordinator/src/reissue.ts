/** One moment by both clocks. */
export interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** Half of the 30 days that a server certificate lives. */
const RENEW_MS = 15 * 24 * 3600 * 1000;
/** Certificates are valid from 5 min before they are issued on: a clock that was set by less changes nothing. */
const CLOCK_SET_MS = 60_000;

/**
 * Reports whether the server certificate has to be issued again: half of its life is over, or the wall clock was set since. After
 * a change of the clock the certificate may not be valid yet, or may end early.
 */
export function isReissueDue(issued: Moment, now: Moment): boolean {
  const passedMs = now.monotonicMs - issued.monotonicMs;
  return passedMs >= RENEW_MS || Math.abs(now.wallMs - issued.wallMs - passedMs) >= CLOCK_SET_MS;
}
