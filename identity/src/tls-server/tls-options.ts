import type { TLSSocket } from "node:tls";
import type { PeerIdentity } from "../peer-identity.ts";
import type { Offence } from "../session-guard/session-guard.ts";
import type { TlsMaterial } from "./material.ts";
import type { AuthenticatedPeer, Peer } from "./peers.ts";
import type { TlsLimits } from "./tls-limits.ts";

/**
 * `ANONYMOUS`: a newer connection without credentials replaced it. `USERS`: there are too many connections with tokens.
 */
export type RefusalReason = "CONNECTIONS" | "ANONYMOUS" | "USERS" | "WAITING" | "PROTOCOL";

export type TlsServerEvent =
  /** The connection was closed for abuse. New connections of its address start at a limited rate. */
  | { readonly type: "cut"; readonly remoteAddress: string; readonly reason: Offence | "HANDSHAKES" }
  | {
      readonly type: "refused";
      readonly remoteAddress: string;
      readonly reason: RefusalReason;
    }
  | { readonly type: "handshake-failed"; readonly remoteAddress: string; readonly reason: string }
  | { readonly type: "closed"; readonly peer: Peer; readonly reason: "REVOKED" | "EXPIRED" | (string & {}) };

export interface TlsServerOptions {
  readonly material: TlsMaterial;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** If set, certificates of other clusters are rejected. */
  readonly cluster?: string;
  /**
   * Reports whether an identity is on the denylist. Called at the handshake, by `peerOf`, and every few seconds for
   * open connections, so it must be fast.
   */
  readonly isRevoked?: (identity: PeerIdentity) => boolean;
  /** The time after its expiry for which a client's certificate still yields `AnonymousPeer.expired`. Default: none. */
  readonly expiredGraceMs?: number;
  readonly limits?: Partial<TlsLimits>;
  /**
   * Is given each connection with an accepted certificate. Returns whether it serves the connection; grpc-js serves the
   * others. Default: grpc-js serves all.
   */
  readonly accept?: (socket: TLSSocket, peer: AuthenticatedPeer) => boolean;
  /** Default: `performance.now`. */
  readonly monotonicMs?: () => number;
  /** Called for each event, for logs and metrics. Must not throw. */
  readonly onEvent?: (event: TlsServerEvent) => void;
}

/** The current numbers of a `TlsServer`'s connections. */
export interface TlsServerStats {
  readonly open: number;
  /** The number of connections that have presented no accepted credentials so far. */
  readonly anonymous: number;
  /** The number of connections that presented an accepted token. */
  readonly users: number;
  readonly handshaking: number;
  readonly waiting: number;
}
