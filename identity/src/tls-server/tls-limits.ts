import type { BudgetRate } from "../session-guard/rate-budget.ts";

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
}

export const DEFAULT_TLS_LIMITS: TlsLimits = {
  /** About 90 KiB each: 1.4 GiB when all are taken. */
  maxConnections: 16_384,
  /** People and scripts with tokens. The other half is a reserve for nodes. */
  maxUsers: 8_192,
  /** Connections on which no call has shown accepted credentials yet; those beyond replace the oldest. */
  maxAnonymous: 2_048,
  /** An eighth, so that no single address replaces the connections of others. */
  maxAnonymousPerAddress: 256,
  /** The first call of a client follows the handshake at once, and a join takes a second. */
  anonymousMs: 30_000,
  /** Calls of a connection before one of them shows accepted credentials. A person with an expired token tries a few times. */
  maxAnonymousStreams: 64,
  /** At 3–4 ms of CPU each, one turn takes 0.1 s; when thousands reconnect at once, more would only make all of them late. */
  maxHandshakes: 32,
  /** Half, so that one address (which may be a whole site behind NAT) never keeps everybody else out. */
  maxHandshakesPerAddress: 16,
  /** The limit of waiting handshakes, as high as the limit of connections. */
  maxWaiting: 16_384,
  /** Thousands of hosts behind one address can reconnect together, but one address never fills the queue. */
  maxWaitingPerAddress: 8_192,
  /** The share of an address whose connections start one by one, 8 a second. A later one would time out. */
  maxWaitingPaced: 120,
  /**
   * Handshakes of an address that no accepted credentials follow. Beyond, its connections start one by one: one address would
   * otherwise take a whole core. People with expired tokens, probes and scanners stay below.
   */
  unusedHandshakes: { burst: 256, perSecond: 16 },
  /** A handshake that is slow for the network's sake gives its place back after this; it may still finish. */
  placeMs: 1_000,
  /** Four round trips of a bad satellite link, with room. */
  handshakeMs: 10_000,
  /** grpc clients give up connecting after 20 s; serving them later is work for nothing. */
  waitMs: 15_000,
};
