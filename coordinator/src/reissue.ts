import type { Log } from "@forage/common/log";
import type { TlsMaterial } from "@forage/identity/tls-server";
import type { Clock } from "./time/clock.ts";

/** A point in time by both clocks. */
export interface ClockReading {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** Half of the 30 days for which a server certificate is valid. */
const RENEW_MS = 15 * 24 * 3600 * 1000;
/**
 * The interval of checks, which is also the delay before a changed wall clock is detected or a
 * failed attempt is repeated.
 */
const CHECK_MS = 60_000;
/**
 * The change of the wall clock that is ignored. Certificates are valid from 5 min before they are
 * issued.
 */
const CLOCK_SET_MS = 60_000;

/**
 * Reports whether the server certificate must be issued again: half of its lifetime is over, or the
 * wall clock was set since. After that, the certificate may not be valid yet, or may expire early.
 */
export function isReissueDue(issued: ClockReading, now: ClockReading): boolean {
  const passedMs = now.monotonicMs - issued.monotonicMs;
  return passedMs >= RENEW_MS || Math.abs(now.wallMs - issued.wallMs - passedMs) >= CLOCK_SET_MS;
}

export interface ReissueOptions {
  readonly issue: () => Promise<TlsMaterial>;
  readonly reload: (material: TlsMaterial) => void;
  readonly clock: Clock;
  readonly log: Pick<Log, "error">;
}

/**
 * Issues the server certificate again whenever it is due, starting from now. A failed attempt is
 * repeated, so that clients never receive an expired certificate. Returns a function that ends
 * this.
 */
export function keepReissued({ issue, reload, clock, log }: ReissueOptions): () => void {
  const now = (): ClockReading => ({ wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() });
  let cancel = (): void => {};
  let isOver = false;
  let issued = now();
  const check = async (): Promise<void> => {
    const startedAt = now();
    if (isReissueDue(issued, startedAt)) {
      try {
        reload(await issue());
        issued = startedAt;
      } catch (err) {
        log.error({ event: "server-certificate-not-renewed", err });
      }
    }
    if (!isOver) later();
  };
  const later = (): void => {
    cancel = clock.schedule(CHECK_MS, () => void check());
  };
  later();
  return () => {
    isOver = true;
    cancel();
  };
}
