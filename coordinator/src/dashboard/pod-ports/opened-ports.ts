import { createHash, timingSafeEqual } from "node:crypto";
import { linkSignals } from "@forage/common/link-signals";
import { CoordinatorError } from "../../errors.ts";
import type { Clock } from "../../time/clock.ts";
import type { DashboardSession } from "../sessions.ts";
import type { StoredPort, StoredPorts } from "../stored-browsers.ts";

/** A port of a pod. */
export interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly port: number;
}

/** A port of a pod that a browser can reach under its own host name until the session ends. */
export interface OpenedPort extends PodPort {
  /** The id, which is the first label of the host name. */
  readonly id: string;
  readonly session: DashboardSession;
  /** Aborts when the port is closed. */
  readonly signal: AbortSignal;
}

interface Kept extends OpenedPort {
  readonly closing: AbortController;
  /** The one-time ticket; undefined once it was used. */
  ticket: { readonly digest: Buffer; readonly untilMs: number } | undefined;
  /** The secret for the cookie; undefined until the ticket is used. */
  secret: Buffer | undefined;
}

export interface OpenedPortsOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly randomBytes: (count: number) => Uint8Array;
  /** The stored ports. Default: ports end with the process. */
  readonly stored?: Pick<StoredPorts, "drain" | "put" | "delete"> | undefined;
  /** Returns the session with the key; undefined if it has ended. */
  readonly sessionOf: (key: string) => DashboardSession | undefined;
}

/** The most opened ports. Each uses a few kilobytes while it has no requests. */
export const MAX_OPENED_PORTS = 128;
/** The most opened ports of one session. When it opens another one, its oldest port is closed. */
export const MAX_OPENED_PORTS_OF_SESSION = 16;
/** The lifetime of a ticket. The browser uses it immediately. */
const TICKET_LIFE_MS = 60_000;
const ID_BYTES = 10;
const SECRET_BYTES = 32;
/** The length of a secret in a cookie, in characters. */
export const SECRET_LENGTH = Math.ceil((SECRET_BYTES * 8) / 6);

/**
 * Holds the ports that browsers have opened. The first address contains a one-time ticket, which is
 * exchanged for a secret in a cookie of that host alone. From then on, a stored port survives a
 * restart of this coordinator.
 */
export class OpenedPorts {
  readonly #options: OpenedPortsOptions;
  /** Ports by id, oldest first. */
  readonly #ports = new Map<string, Kept>();
  #isOver = false;

  constructor(options: OpenedPortsOptions) {
    this.#options = options;
    for (const [id, stored] of options.stored?.drain() ?? []) this.#adopt(id, stored);
  }

  get size(): number {
    return this.#ports.size;
  }

  /**
   * Opens a port, and returns it with its ticket. Throws RESOURCE_EXHAUSTED if other sessions use
   * all slots.
   */
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
    const untilMs = this.#options.clock.monotonicMs() + TICKET_LIFE_MS;
    const proof = { ticket: { digest: digestOf(ticket), untilMs }, secret: undefined };
    return { opened: this.#keep(id, session, target, proof), ticket };
  }

  /** Restores a port that was opened at another coordinator, or at this one before its restart. */
  #adopt(id: string, { session: key, secretDigest, namespace, pod, podUid, port }: StoredPort): void {
    const session = this.#options.sessionOf(key);
    if (session === undefined || this.#ports.size >= MAX_OPENED_PORTS) {
      this.#options.stored?.delete(id);
      return;
    }
    const proof = { ticket: undefined, secret: Buffer.from(secretDigest, "hex") };
    this.#keep(id, session, { namespace, pod, podUid, port }, proof);
  }

  #keep(
    id: string,
    session: DashboardSession,
    target: PodPort,
    proof: Pick<Kept, "ticket" | "secret">,
  ): OpenedPort {
    const closing = new AbortController();
    const { signal } = linkSignals(closing.signal, session.signal);
    const kept: Kept = { ...target, id, session, closing, signal, ...proof };
    this.#ports.set(id, kept);
    // The listener is removed to release a closed port.
    const ended = (): void => {
      kept.signal.removeEventListener("abort", ended);
      this.#ports.delete(id);
      if (kept.secret !== undefined && !this.#isOver) this.#options.stored?.delete(id);
    };
    kept.signal.addEventListener("abort", ended);
    return kept;
  }

  find(id: string): OpenedPort | undefined {
    return this.#ports.get(id);
  }

  /**
   * Exchanges the ticket for the secret of the cookie. Returns undefined if the ticket belongs to
   * another port, was used, or has expired.
   */
  exchange(id: string, ticket: string): string | undefined {
    const kept = this.#ports.get(id);
    if (kept?.ticket === undefined || !isSame(kept.ticket.digest, ticket)) return undefined;
    const isLate = this.#options.clock.monotonicMs() >= kept.ticket.untilMs;
    kept.ticket = undefined;
    if (isLate) return undefined;
    const secret = this.#random(SECRET_BYTES, "base64url");
    kept.secret = digestOf(secret);
    const { namespace, pod, podUid, port, session } = kept;
    const secretDigest = kept.secret.toString("hex");
    this.#options.stored?.put(id, { session: session.key, namespace, pod, podUid, port, secretDigest });
    return secret;
  }

  isSecret(id: string, secret: string): boolean {
    const digest = this.#ports.get(id)?.secret;
    return digest !== undefined && isSame(digest, secret);
  }

  close(id: string): void {
    this.#ports.get(id)?.closing.abort();
  }

  /** Closes all ports of this process. Stored ports continue at the next coordinator. */
  closeAll(): void {
    this.#isOver = true;
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
