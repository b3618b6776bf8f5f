import type { Clock } from "@forage/common/clock";
import { reasonNotIssuable } from "../coordinator/src/certificates/hostname.ts";
import { IssueError } from "../coordinator/src/certificates/issue-error.ts";
import type { Issuer, NewCertificate } from "../coordinator/src/certificates/issuer.ts";

/** The lifetime of a certificate. It is so short that a history has renewals. */
export const LIFE_MS = 30 * 60_000;
const LONGEST_ORDER_MS = 5_000;

export interface SimIssuerOptions {
  /** A clock whose timers continue when the coordinator dies. */
  readonly clock: Pick<Clock, "nowMs" | "schedule">;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

/** An authority that survives the coordinator. Its certificates are plain text without cryptography. */
export class SimIssuer implements Issuer {
  readonly id = "simulated/1";
  readonly name = "the simulated authority";
  readonly atOnce = 4;
  readonly #options: SimIssuerOptions;
  #serial = 0;
  /** True while the authority can't be reached. */
  isAway = false;

  constructor(options: SimIssuerOptions) {
    this.#options = options;
  }

  refusalOf(hostname: string): string | undefined {
    return reasonNotIssuable(hostname);
  }

  async issue(hostname: string, signal: AbortSignal): Promise<NewCertificate> {
    const { clock, random } = this.#options;
    await new Promise<void>((resolve) => clock.schedule(Math.ceil(random() * LONGEST_ORDER_MS), resolve));
    signal.throwIfAborted();
    if (this.isAway) throw new IssueError("the simulated authority does not answer", { blame: "issuer" });
    const notBeforeMs = clock.nowMs();
    const notAfterMs = notBeforeMs + LIFE_MS;
    const serial = ++this.#serial;
    const chainPem = `certificate ${serial} of ${hostname} until ${notAfterMs}`;
    return { chainPem, keyPem: `key ${serial}`, notBeforeMs, notAfterMs };
  }
}

/**
 * Returns the hostname and the expiry of a certificate of the simulated authority. Throws if the key belongs to another
 * one.
 */
export function readCertificate({ chainPem, keyPem }: Pick<NewCertificate, "chainPem" | "keyPem">): {
  readonly hostname: string;
  readonly endsMs: number;
} {
  const [, serial, hostname, ends] = /^certificate (\d+) of (\S+) until (\d+)$/.exec(chainPem) ?? [];
  if (hostname === undefined || keyPem !== `key ${serial}`)
    throw new Error(`${chainPem} does not belong to ${keyPem}`);
  return { hostname, endsMs: Number(ends) };
}
