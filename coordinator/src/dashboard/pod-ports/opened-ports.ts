import { createHash, timingSafeEqual } from "node:crypto";
import { CoordinatorError } from "../../errors.ts";
import type { Clock } from "../../time/clock.ts";
import type { DashboardSession } from "../sessions.ts";

/** A port of a pod. */
export interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly port: number;
}

/** A port of a pod that a browser may reach under a host name of its own, until its session ends. */
export interface OpenedPort extends PodPort {
  /** The first label of the host name. */
  readonly id: string;
  readonly session: DashboardSession;
  /** Aborts when the port is closed. */
  readonly signal: AbortSignal;
}

interface Kept extends OpenedPort {
  readonly closing: AbortController;
  /** Undefined: it has been used. */
  ticket: { readonly digest: Buffer; readonly untilMs: number } | undefined;
  /** Undefined until the ticket is used. */
  secret: Buffer | undefined;
}

export interface OpenedPortsOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** Each takes a few kilobytes while nothing is open. */
export const MAX_OPENED_PORTS = 128;
/** A session that opens more closes its own oldest one. */
export const MAX_OPENED_PORTS_OF_SESSION = 16;
/** The browser opens the address at once. */
const TICKET_LIFE_MS = 60_000;
const ID_BYTES = 10;
const SECRET_BYTES = 32;
/** The characters of a secret in a cookie. */
export const SECRET_LENGTH = Math.ceil((SECRET_BYTES * 8) / 6);

/**
 * Holds the ports that browsers have opened, in memory only. A ticket in the first address is used once, and exchanged for a secret,
 * which the browser keeps in a cookie of that host alone.
 */
export class OpenedPorts {
  readonly #options: OpenedPortsOptions;
  /** Keyed by id, oldest first. */
  readonly #ports = new Map<string, Kept>();

  constructor(options: OpenedPortsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#ports.size;
  }

  /** Throws RESOURCE_EXHAUSTED when other sessions have taken all places. */
  open(session: DashboardSession, target: PodPort): { readonly opened: OpenedPort; readonly ticket: string } {
    const own = [...this.#ports.values()].filter((port) => port.session === session);
    if (own.length >= MAX_OPENED_PORTS_OF_SESSION || (own.length > 0 && this.#ports.size >= MAX_OPENED_PORTS))
      this.close(own[0]?.id ?? "");
    if (this.#ports.size >= MAX_OPENED_PORTS)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `${MAX_OPENED_PORTS} ports of pods are open in browsers; try again later`,
      );
    const id = `p-${this.#random(ID_BYTES, "hex")}`;
    const ticket = this.#random(SECRET_BYTES, "hex");
    const closing = new AbortController();
    const kept: Kept = {
      ...{ ...target, id, session, closing, secret: undefined },
      signal: AbortSignal.any([closing.signal, session.signal]),
      ticket: {
        digest: digestOf(ticket),
        untilMs: this.#options.clock.monotonicMs() + TICKET_LIFE_MS,
      },
    };
    this.#ports.set(id, kept);
    // The session's signal holds it no longer than this port: both end with the first of them.
    const ended = (): void => {
      kept.signal.removeEventListener("abort", ended);
      this.#ports.delete(id);
    };
    kept.signal.addEventListener("abort", ended);
    return { opened: kept, ticket };
  }

  find(id: string): OpenedPort | undefined {
    return this.#ports.get(id);
  }

  /** Returns the secret for the cookie. Undefined: the ticket is another one's, was used, or is too old. */
  exchange(id: string, ticket: string): string | undefined {
    const kept = this.#ports.get(id);
    if (kept?.ticket === undefined || !isSame(kept.ticket.digest, ticket)) return undefined;
    const isLate = this.#options.clock.monotonicMs() >= kept.ticket.untilMs;
    kept.ticket = undefined;
    if (isLate) return undefined;
    const secret = this.#random(SECRET_BYTES, "base64url");
    kept.secret = digestOf(secret);
    return secret;
  }

  isSecret(id: string, secret: string): boolean {
    const digest = this.#ports.get(id)?.secret;
    return digest !== undefined && isSame(digest, secret);
  }

  close(id: string): void {
    this.#ports.get(id)?.closing.abort();
  }

  closeAll(): void {
    for (const id of [...this.#ports.keys()]) this.close(id);
  }

  #random(count: number, encoding: "hex" | "base64url"): string {
    return Buffer.from(this.#options.randomBytes(count)).toString(encoding);
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function isSame(digest: Buffer, text: string): boolean {
  return timingSafeEqual(digest, digestOf(text));
}
