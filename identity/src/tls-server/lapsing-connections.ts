import { InTurn } from "../in-turn.ts";
import type { PeerIdentity } from "../peer-identity.ts";
import type { Connection, Lapsed, Peers } from "./peers.ts";

/**
 * The number of connections that one check for expiry and revocation visits, beside those already found lapsed. An
 * expired certificate is noticed after 0.4 s on a server of 1,000 connections, and after 2 s on one of 5,000.
 * Connections named by `recheck` are visited out of turn.
 */
const SWEPT_AT_ONCE = 1_000;

/**
 * Finds connections whose certificate has expired or was revoked. Each gets one more visit between its discovery and
 * its end.
 */
export class LapsingConnections {
  readonly #peers: Peers;
  /** Connections that were found lapsed at their last visit. */
  readonly #found = new Set<Connection>();
  readonly #rechecked = new Set<Connection>();
  readonly #turns: InTurn<Connection>;

  constructor(peers: Peers) {
    this.#peers = peers;
    this.#turns = new InTurn(peers.connections);
  }

  /** Visits connections, and returns those that were already lapsed at their last visit. */
  due(atOnce = SWEPT_AT_ONCE): readonly Lapsed[] {
    const due: Lapsed[] = [];
    const visited = new Set([...this.#found, ...this.#rechecked, ...this.#turns.next(atOnce)]);
    this.#rechecked.clear();
    for (const connection of visited) {
      const isOpen = this.#peers.connections.has(connection);
      const problem = isOpen ? this.#peers.problemOf(connection) : undefined;
      if (problem === undefined) this.#found.delete(connection);
      else if (this.#found.has(connection)) due.push({ connection, problem });
      else this.#found.add(connection);
    }
    return due;
  }

  /** Makes the next visits include all open connections that match, out of turn. */
  recheck(matches: (identity: PeerIdentity) => boolean): void {
    for (const connection of this.#peers.connections) {
      const { peer } = connection;
      if (peer.type === "authenticated" && matches(peer.identity)) this.#rechecked.add(connection);
    }
  }
}
