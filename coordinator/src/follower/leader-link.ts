import { type Client, connectivityState } from "@grpc/grpc-js";
import { CoordinatorError } from "../errors.ts";
import { type CoordinatorChannelsOptions, openCoordinatorChannels } from "../peers/coordinator-channels.ts";
import type { Leader } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

export interface LeaderLinkOptions extends CoordinatorChannelsOptions {
  readonly clock: Pick<Clock, "schedule" | "monotonicMs" | "nowMs">;
}

/** Streams of all callers share connections, and one connection has one flow-control window. */
const CONNECTIONS = 4;
/** Certificates last for thirty days. */
const CERTIFICATE_MAX_AGE_MS = 10 * 24 * 3600 * 1000;
/** The time in which a new leader is usually found. */
export const WAIT_MS = 10_000;
/** Calls that wait for a leader. */
const MAX_WAITING = 10_000;
/** The longest wait for one connection at a time. */
const CONNECT_MS = 10_000;

interface Connected {
  readonly address: string;
  readonly sinceMs: number;
  readonly clients: Promise<readonly Client[]>;
}

/** Connects to the coordinator that leads, with a certificate that lets this one speak for its callers. */
export class LeaderLink {
  readonly #options: LeaderLinkOptions;
  readonly #waiting = new Set<() => void>();
  #leader: Leader | undefined;
  #connected: Connected | undefined;
  #next = 0;
  /** Counts the times that waiting calls were woken, so that none misses one. */
  #wakes = 0;
  #closed = false;

  constructor(options: LeaderLinkOptions) {
    this.#options = options;
  }

  /** Undefined: none is known. */
  get leader(): Leader | undefined {
    return this.#leader;
  }

  /** Takes in the coordinator that leads. Undefined: none does. Calls that go on with the former one are left to it. */
  observe(leader: Leader | undefined): void {
    this.#leader = leader;
    const address = leader?.addresses?.[0];
    if (leader !== undefined && address !== this.#connected?.address) this.#disconnect();
    this.#wakeAll();
  }

  /** Connects again, with the present authority, for further calls. Calls that go on are left to the former connections. */
  renew(): void {
    this.#disconnect();
    this.#wakeAll();
  }

  /**
   * Returns a channel that is connected to the leader. Waits while none is known, or while it can't be reached: it may have
   * ended a moment ago.
   * @throws CoordinatorError UNAVAILABLE when there is none in time.
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
    if (address === undefined) throw unavailable(`${name} leads, at no known address`);
    const clients = await this.#connect(address).clients;
    // Another coordinator may have been seen meanwhile.
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
    // A failure is the calls' to report, and the next call tries again.
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

  /** Waits until another leader is known, the channel is connected, the time is up or the call is over. */
  async #untilChanged(leftMs: number, client: Client | undefined, signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= MAX_WAITING) throw unavailable("too many calls wait for a leader");
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    const waitMs = Math.min(leftMs, CONNECT_MS);
    const cancel = this.#options.clock.schedule(waitMs, wake);
    this.#waiting.add(wake);
    signal.addEventListener("abort", wake, { once: true });
    // A closed channel answers at once, with an error.
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
