import type { PeerIdentity } from "../peer-identity.ts";
import type { Offence } from "../session-guard/session-guard.ts";
import type { TlsMaterial } from "./material.ts";
import type { Peer } from "./peers.ts";
import type { TlsLimits } from "./tls-limits.ts";

/** `ANONYMOUS`: a newer connection without credentials took the place. `USERS`: too many connections of tokens. */
export type RefusalReason = "CONNECTIONS" | "ANONYMOUS" | "USERS" | "WAITING" | "PROTOCOL";

export type TlsServerEvent =
  /** Closed for abuse; new connections of its address then start at a limited rate. */
  | { readonly kind: "cut"; readonly remoteAddress: string; readonly reason: Offence | "HANDSHAKES" }
  | {
      readonly kind: "refused";
      readonly remoteAddress: string;
      readonly reason: RefusalReason;
    }
  | { readonly kind: "handshakeFailed"; readonly remoteAddress: string; readonly reason: string }
  | { readonly kind: "closed"; readonly peer: Peer; readonly reason: "REVOKED" | "EXPIRED" | (string & {}) };

export interface TlsServerOptions {
  readonly material: TlsMaterial;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Identities of other clusters count as none. */
  readonly cluster?: string;
  /** The denylist: asked at the handshake, by `peerOf`, and every few seconds for open connections. Must be quick. */
  readonly isRevoked?: (identity: PeerIdentity) => boolean;
  /** The time after its end for which a client's certificate still gives `AnonymousPeer.expired`. Default: none. */
  readonly expiredGraceMs?: number;
  readonly limits?: Partial<TlsLimits>;
  /** Default: `performance.now`. */
  readonly monotonicMs?: () => number;
  /** Called for each event, for logs and metrics. Must not throw. */
  readonly onEvent?: (event: TlsServerEvent) => void;
}

/** Connections of a `TlsServer` at this moment. */
export interface TlsServerStats {
  readonly open: number;
  /** The number of connections that have shown no accepted credentials so far. */
  readonly anonymous: number;
  /** Proven by a token in a call. */
  readonly users: number;
  readonly handshaking: number;
  readonly waiting: number;
}
