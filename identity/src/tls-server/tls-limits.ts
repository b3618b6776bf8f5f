import type { BudgetRate } from "../session-guard/rate-budget.ts";
import type { SilenceLimits } from "../session-guard/silence.ts";

export interface TlsLimits {
  readonly maxConnections: number;
  readonly maxUsers: number;
  readonly maxAnonymous: number;
  readonly maxAnonymousPerAddress: number;
  readonly anonymousMs: number;
  readonly maxAnonymousStreams: number;
  readonly maxHandshakes: number;
  readonly maxHandshakesPerAddress: number;
  readonly maxWaiting: number;
  readonly maxWaitingPerAddress: number;
  readonly maxWaitingPaced: number;
  readonly unusedHandshakes: BudgetRate;
  readonly placeMs: number;
  readonly handshakeMs: number;
  readonly waitMs: number;
  readonly silence: SilenceLimits;
}

export const DEFAULT_TLS_LIMITS: TlsLimits = {
  /** Each takes about 90 KiB: 1.4 GiB in all. */
  maxConnections: 16_384,
  /** The limit of connections of people and scripts with tokens. The other half is reserved for nodes. */
  maxUsers: 8_192,
  /** The limit of connections without accepted credentials. Further ones replace the oldest. */
  maxAnonymous: 2_048,
  /** An eighth of all, so no single address can replace the connections of others. */
  maxAnonymousPerAddress: 256,
  /** The time within which a connection must present accepted credentials. A client makes its first call directly after the handshake, and a join takes a second. */
  anonymousMs: 30_000,
  /**
   * The limit of calls on a connection without accepted credentials. A person with an expired token tries a few times.
   */
  maxAnonymousStreams: 64,
  /**
   * Each takes 3–4 ms of CPU, so one round takes 0.1 s. When thousands reconnect at once, more would only make all of
   * them late.
   */
  maxHandshakes: 32,
  /** Half of all, so one address (which may be a whole site behind NAT) never keeps all others out. */
  maxHandshakesPerAddress: 16,
  /** The limit of waiting handshakes, as high as the limit of connections. */
  maxWaiting: 16_384,
  /** Thousands of hosts behind one address can reconnect together, but never fill the queue. */
  maxWaitingPerAddress: 8_192,
  /** The share of the queue of an address whose connections start one by one, 8 a second. Any more would time out. */
  maxWaitingPaced: 60,
  /**
   * The budget of handshakes per address that no accepted credentials follow. Beyond it, connections of the address
   * start one by one; otherwise one address could use a whole core. People with expired tokens, probes and scanners
   * stay below it.
   */
  unusedHandshakes: { burst: 256, perSecond: 16 },
  /** The time after which a handshake over a slow network frees its place. It may still complete. */
  placeMs: 1_000,
  /** Four round trips of a bad satellite link, with a margin. */
  handshakeMs: 10_000,
  /**
   * Half of the 15 s that an agent waits for its welcome. The other half is for the handshake. With the whole time, an overloaded
   * server would do all handshakes for agents that close the connection before the welcome.
   */
  waitMs: 7_500,
  /** Clients behind NAT keep their entries, and watches of clients that are gone end, within about 40 s. */
  silence: { probeMs: 20_000, answerMs: 10_000 },
};
