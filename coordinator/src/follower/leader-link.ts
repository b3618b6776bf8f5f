import { type Client, connectivityState } from "@grpc/grpc-js";
import { CoordinatorError } from "../errors.ts";
import { type CoordinatorChannelsOptions, openCoordinatorChannels } from "../peers/coordinator-channels.ts";
import type { Leader } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

export interface LeaderLinkOptions extends CoordinatorChannelsOptions {
  readonly clock: Pick<Clock, "schedule" | "monotonicMs" | "nowMs">;
}

/**
 * The number of connections to the leader. All callers share them, and each connection has only one
 * flow-control window.
 */
const CONNECTIONS = 4;
/** The age at which a certificate is replaced. Certificates are valid for thirty days. */
const CERTIFICATE_MAX_AGE_MS = 10 * 24 * 3600 * 1000;
/** The time within which a new leader is usually found. */
export const WAIT_MS = 10_000;
/** The most calls that wait for a leader. */
const MAX_WAITING = 10_000;
/** The longest wait for a connection before the state is checked again. */
const CONNECT_MS = 10_000;

interface Connected {
  readonly address: string;
  readonly sinceMs: number;
  readonly clients: Promise<readonly Client[]>;
}

/**
 * Connects to the leader with a certificate that permits this coordinator to pass on its callers'
 * identities.
 */
export class LeaderLink {
  readonly #options: LeaderLinkOptions;
  readonly #waiting = new Set<() => void>();
  #leader: Leader | undefined;
  #connected: Connected | undefined;
  #next = 0;
  /** Counts how often waiting calls were woken, so that none misses a change. */
  #wakes = 0;
  #closed = false;

  constructor(options: LeaderLinkOptions) {
    this.#options = options;
  }

  /** The leader; undefined if none is known. */
  get leader(): Leader | undefined {
    return this.#leader;
  }

  /** Sets the leader; undefined if there is none. Calls in progress stay with the former leader. */
  observe(leader: Leader | undefined): void {
    this.#leader = leader;
    const address = leader?.addresses?.[0];
    if (leader !== undefined && address !== this.#connected?.address) this.#disconnect();
    this.#wakeAll();
  }

  /**
   * Opens new connections with the present authority for further calls. Calls in progress stay on
   * the former connections.
   */
  renew(): void {
    this.#disconnect();
    this.#wakeAll();
  }

  /**
   * Returns a channel that is connected to the leader. Waits while no leader is known or while it
   * can't be reached, because it may have just ended. @throws CoordinatorError UNAVAILABLE if there
   * is none in time.
   */
  async client(signal: AbortSignal, patienceMs = WAIT_MS): Promise<Client> {
    const untilMs = this.#monotonicMs() + patienceMs;
    for (;;) {
      if (this.#closed) throw unavailable("this coordinator stops");
      const wakes = this.#wakes;
      const client = await this.#nextClient();
      if (client?.getChannel().getConnectivityState(true) === connectivityState.READY) return client;
      const leftMs = untilMs - this.#monotonicMs();
      if (leftMs <= 0 || signal.aborted) throw unavailable(this.#problem());
      if (wakes === this.#wakes) await this.#untilChanged(leftMs, client, signal);
    }
  }

  close(): void {
    this.#closed = true;
    this.#disconnect();
    this.#wakeAll();
  }

  async #nextClient(): Promise<Client | undefined> {
    const { name, addresses = [] } = this.#leader ?? {};
    if (name === undefined) return undefined;
    const [address] = addresses;
    if (address === undefined) throw unavailable(`${name} leads, but its address is unknown`);
    const clients = await this.#connect(address).clients;
    // Another leader may have been observed in the meantime.
    return this.#connected?.address === address ? clients[this.#next++ % clients.length] : undefined;
  }

  #connect(address: string): Connected {
    const known = this.#connected;
    const isUsable = known !== undefined && this.#monotonicMs() - known.sinceMs <= CERTIFICATE_MAX_AGE_MS;
    if (isUsable && known.address === address) return known;
    this.#disconnect();
    const connected = {
      address,
      sinceMs: this.#monotonicMs(),
      clients: openCoordinatorChannels(address, CONNECTIONS, this.#options),
    };
    // The calls report the failure, and the next call tries again.
    connected.clients.catch(() => {
      if (this.#connected === connected) this.#connected = undefined;
    });
    this.#connected = connected;
    return connected;
  }

  #disconnect(): void {
    const connected = this.#connected;
    this.#connected = undefined;
    connected?.clients.then(
      (clients) => {
        for (const client of clients) client.close();
      },
      () => {},
    );
  }

  /**
   * Waits until another leader is known, the channel is connected, the time is over or the call has
   * ended.
   */
  async #untilChanged(leftMs: number, client: Client | undefined, signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= MAX_WAITING) throw unavailable("too many calls wait for a leader");
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    const waitMs = Math.min(leftMs, CONNECT_MS);
    const cancel = this.#options.clock.schedule(waitMs, wake);
    this.#waiting.add(wake);
    signal.addEventListener("abort", wake, { once: true });
    // A closed channel calls back at once with an error.
    client?.waitForReady(this.#options.clock.nowMs() + waitMs, wake);
    await promise;
    signal.removeEventListener("abort", wake);
    cancel();
    this.#waiting.delete(wake);
  }

  #wakeAll(): void {
    this.#wakes++;
    for (const wake of this.#waiting) wake();
  }

  #problem(): string {
    const leader = this.#leader;
    if (leader === undefined) return "no coordinator leads at the moment";
    return `${leader.name} leads and can't be reached at ${leader.addresses?.[0]}`;
  }

  #monotonicMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

function unavailable(reason: string): CoordinatorError {
  return new CoordinatorError("UNAVAILABLE", `${reason}: try again`);
}
