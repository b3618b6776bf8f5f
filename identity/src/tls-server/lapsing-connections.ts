import { InTurn } from "../in-turn.ts";
import type { PeerIdentity } from "../peer-identity.ts";
import type { Connection, LapsedConnection, Peers } from "./peers.ts";

/** The number of checks within which all connections are visited in turn: 40 s. */
const CHECKS = 100;
/** The number of connections that each check visits in turn at least. */
const MIN_VISITS = 100;

/**
 * Finds connections whose certificate has expired or was revoked. Each gets one more visit between its discovery and
 * its end. Expired ones are visited at once, because the earliest end is known. Revoked ones are named by `recheck`. The
 * visits in turn find the rest, for example after the wall clock was set.
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

  /** Visits connections, `atOnce` of them in turn, and returns those that were already lapsed at their last visit. */
  due(atOnce = this.#visits()): readonly LapsedConnection[] {
    const due: LapsedConnection[] = [];
    for (const connection of this.#peers.expired()) this.#rechecked.add(connection);
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

  #visits(): number {
    return Math.max(MIN_VISITS, Math.ceil(this.#peers.connections.size / CHECKS));
  }

  /** Makes the next visits include all open connections that match, out of turn. */
  recheck(matches: (identity: PeerIdentity) => boolean): void {
    for (const connection of this.#peers.connections) {
      const { peer } = connection;
      if (peer.type === "authenticated" && matches(peer.identity)) this.#rechecked.add(connection);
    }
  }
}
