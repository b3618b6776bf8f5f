import type { Socket } from "node:net";
import { messageOf } from "@forage/common/message-of";
import { connectToLeader } from "./connect-to-leader.ts";
import type { PassCount } from "./pass-counts.ts";
import type { PassHttpOptions } from "./pass-http.ts";
import type { PassedConnection } from "./passed-connection.ts";
import type { PassedPort } from "./serve-connection.ts";

export interface PassConnectionsOptions extends Pick<PassHttpOptions, "client"> {
  readonly port: PassedPort;
  /** The most connections that are passed on at a time. */
  readonly maxOpen: number;
  readonly count: PassCount;
  /**
   * Returns the bytes to send to a client whose connection can't be passed on. Default: the
   * connection is closed without an answer.
   */
  readonly refusal?: (reason: string) => string;
}

/** The time for which a refused client may read the answer. */
const REFUSED_MS = 5_000;

/**
 * Passes whole connections to a port on to the leader, which serves them like connections to its
 * own port.
 */
export class PassConnections {
  readonly #options: PassConnectionsOptions;
  /** The passed-on connections, including those that wait for the leader. */
  readonly #open = new Set<Socket>();
  readonly #joined = new Set<Socket>();

  constructor(options: PassConnectionsOptions) {
    this.#options = options;
  }

  /** Passes on a connection. If it uses TLS, the TLS ends here. */
  pass(socket: Socket): void {
    const { client, port, maxOpen, count } = this.#options;
    socket.on("error", () => socket.destroy());
    if (this.#open.size >= maxOpen) {
      this.#refuse(socket, "too many connections are passed on to the leader: try again later");
      return;
    }
    const gone = new AbortController();
    this.#open.add(socket);
    count.open++;
    socket.once("close", () => {
      this.#open.delete(socket);
      count.open--;
      this.#joined.delete(socket);
      gone.abort();
    });
    connectToLeader(client, port, socket, "encrypted" in socket, gone.signal).then(
      (connection) => {
        count.passed++;
        if (!socket.destroyed) this.#joined.add(socket);
        join(socket, connection);
      },
      (error: unknown) => this.#refuse(socket, messageOf(error)),
    );
  }

  /**
   * Ends the connections that are passed on at present. Connections that wait for a leader keep
   * waiting.
   */
  end(): void {
    for (const socket of this.#joined) socket.destroy();
  }

  #refuse(socket: Socket, reason: string): void {
    this.#options.count.refused++;
    socket.setTimeout(REFUSED_MS, () => socket.destroy());
    socket.resume();
    socket.end(this.#options.refusal?.(reason) ?? "");
  }
}

function join(socket: Socket, connection: PassedConnection): void {
  connection.on("error", () => socket.destroy());
  if (socket.destroyed) {
    connection.destroy();
    return;
  }
  // The call ends when the leader has closed the connection.
  connection.once("end", () => socket.destroySoon());
  socket.once("close", () => connection.destroy());
  connection.pipe(socket, { end: false });
  socket.pipe(connection);
}
