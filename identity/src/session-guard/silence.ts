/** The times after which a silent connection is probed and closed. */
export interface SilenceLimits {
  /** The time without received bytes after which a PING is sent. */
  readonly probeMs: number;
  /** The time within which the PING must be answered. */
  readonly answerMs: number;
}

/** The result of a visit: nothing, a PING is due, or the connection has to be closed. */
export type SilenceStep = "none" | "probe" | "close";

/**
 * Detects by the number of received bytes that the peer of a connection is gone. A connection on which anything arrives
 * is not probed, so that agents, which send heartbeats, cost no PINGs.
 */
export class Silence {
  readonly #limits: SilenceLimits;
  #bytesRead = 0;
  /** The monotonic time of the visit at which received bytes were last noticed. */
  #receivedMs: number;
  #probedMs: number | undefined;
  #isOverdue = false;

  constructor(limits: SilenceLimits, nowMs: number) {
    this.#limits = limits;
    this.#receivedMs = nowMs;
  }

  /** Notes the number of bytes that the connection has received so far. */
  visit(nowMs: number, bytesRead: number): SilenceStep {
    if (bytesRead !== this.#bytesRead) {
      this.#bytesRead = bytesRead;
      this.#receivedMs = nowMs;
      this.#probedMs = undefined;
      this.#isOverdue = false;
      return "none";
    }
    if (this.#probedMs === undefined) {
      if (nowMs - this.#receivedMs < this.#limits.probeMs) return "none";
      this.#probedMs = nowMs;
      return "probe";
    }
    if (nowMs - this.#probedMs < this.#limits.answerMs) return "none";
    if (this.#isOverdue) return "close";
    // After a pause of the process, the answer may have arrived without having been read.
    this.#isOverdue = true;
    return "none";
  }
}
