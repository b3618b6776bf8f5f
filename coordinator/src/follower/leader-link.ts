import { channelCredentials } from "@forage/identity/credentials";
import { Client } from "@grpc/grpc-js";
import type { Authority } from "../authority/authority.ts";
import { CoordinatorError } from "../errors.ts";
import type { Leader } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

export interface LeaderLinkOptions {
  readonly authority: Authority;
  /** This coordinator's id. */
  readonly self: string;
  readonly clock: Pick<Clock, "schedule" | "monotonicMs">;
}

/** Streams of all callers share connections, and one connection has one flow-control window. */
const CONNECTIONS = 4;
/** Certificates last for thirty days. */
const CERTIFICATE_MAX_AGE_MS = 10 * 24 * 3600 * 1000;
/** The time in which a new leader is usually found. */
const WAIT_MS = 10_000;
/** Calls that wait for a leader. */
const MAX_WAITING = 10_000;

const CHANNEL_OPTIONS = {
  "grpc.keepalive_time_ms": 5_000,
  "grpc.keepalive_timeout_ms": 3_000,
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  "grpc.initial_reconnect_backoff_ms": 200,
  "grpc.max_reconnect_backoff_ms": 1_000,
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  "grpc.use_local_subchannel_pool": 1,
};

interface Connected {
  readonly clients: readonly Client[];
  readonly sinceMs: number;
}

/** Connects to the coordinator that leads, with a certificate that lets this one speak for its callers. */
export class LeaderLink {
  readonly #options: LeaderLinkOptions;
  readonly #waiting = new Set<() => void>();
  #leader: Leader | undefined;
  #connected: Promise<Connected> | undefined;
  #next = 0;
  #closed = false;

  constructor(options: LeaderLinkOptions) {
    this.#options = options;
  }

  get leader(): Leader | undefined {
    return this.#leader;
  }

  /** Takes in the coordinator that leads. */
  observe(leader: Leader): void {
    const before = this.#leader;
    this.#leader = leader;
    if (before?.holder === leader.holder && String(before.addresses) === String(leader.addresses)) return;
    this.#disconnect();
    for (const wake of this.#waiting) wake();
  }

  /**
   * Returns a channel to the leader. Waits a moment while none is known.
   * @throws CoordinatorError UNAVAILABLE when none is found.
   */
  async client(signal: AbortSignal): Promise<Client> {
    if (this.#leader === undefined) await this.#untilKnown(signal);
    const { addresses = [], name } = this.#leader ?? { name: "no coordinator" };
    const [address] = addresses;
    if (this.#closed || address === undefined) throw unavailable(`${name} leads, at no known address`);
    const { clients } = await this.#connect(address);
    const client = clients[this.#next++ % clients.length];
    if (client === undefined || this.#closed) throw unavailable("this coordinator stops");
    return client;
  }

  close(): void {
    this.#closed = true;
    this.#disconnect();
    for (const wake of this.#waiting) wake();
  }

  async #connect(address: string): Promise<Connected> {
    const known = await this.#connected;
    const ageMs = this.#options.clock.monotonicMs() - (known?.sinceMs ?? 0);
    if (known !== undefined && ageMs > CERTIFICATE_MAX_AGE_MS) this.#disconnect();
    const connected = this.#connected ?? this.#open(address);
    this.#connected = connected;
    return connected;
  }

  async #open(address: string): Promise<Connected> {
    const { authority, self, clock } = this.#options;
    const { chainPem, keyPem } = await authority.issueCoordinator(self);
    const credentials = channelCredentials({ caPem: authority.certPem, certPem: chainPem, keyPem });
    const clients = Array.from(
      { length: CONNECTIONS },
      () => new Client(address, credentials, CHANNEL_OPTIONS),
    );
    return { clients, sinceMs: clock.monotonicMs() };
  }

  #disconnect(): void {
    const connected = this.#connected;
    this.#connected = undefined;
    connected?.then(
      ({ clients }) => {
        for (const client of clients) client.close();
      },
      () => {},
    );
  }

  async #untilKnown(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= MAX_WAITING) throw unavailable("too many calls wait for a leader");
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.schedule(WAIT_MS, resolve);
    this.#waiting.add(resolve);
    const leave = (): void => resolve();
    signal.addEventListener("abort", leave, { once: true });
    await promise;
    signal.removeEventListener("abort", leave);
    cancel();
    this.#waiting.delete(resolve);
    if (this.#leader === undefined) throw unavailable("no coordinator leads at the moment");
  }
}

function unavailable(reason: string): CoordinatorError {
  return new CoordinatorError("UNAVAILABLE", `${reason}: try again`);
}
