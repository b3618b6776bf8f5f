/** The default share of its lifetime after which a certificate is renewed, as in ACME clients. */
const RENEW_AT = 2 / 3;
/**
 * The share of its lifetime after which a node's certificate is renewed. Of 30 days, 20 remain to survive an outage of
 * the coordinator.
 */
export const NODE_RENEW_AT = 1 / 3;
/** The jitter keeps certificates of hosts that joined together from being renewed together. */
const JITTER = 0.1;

export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/**
 * Returns the time of the renewal in milliseconds since the epoch: the share `at` of the lifetime, plus or minus up to
 * a tenth of the lifetime. `random` is a number in [0, 1), drawn once per certificate, so repeated calls return the
 * same time.
 */
export function renewAtMs({ notBeforeMs, notAfterMs }: Validity, random: number, at = RENEW_AT): number {
  const factor = at * (1 + JITTER * (2 * random - 1));
  return Math.round(notBeforeMs + (notAfterMs - notBeforeMs) * factor);
}

/** Returns the state of a certificate. `expired`: it can only be renewed within the coordinator's grace period. */
export function renewalState(
  validity: Validity,
  random: number,
  nowMs: number,
  at = RENEW_AT,
): "fresh" | "due" | "expired" {
  if (nowMs >= validity.notAfterMs) return "expired";
  return nowMs >= renewAtMs(validity, random, at) ? "due" : "fresh";
}
