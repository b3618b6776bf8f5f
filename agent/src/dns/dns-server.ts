import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, isIPv6, type Server, type Socket } from "node:net";
import type { Forwarder } from "./forwarder.ts";
import { domainOf, type LookupDependencies, lookUp } from "./lookup.ts";
import { answerOf, readQuery, truncated } from "./message.ts";
import { framed } from "./query-server.ts";

export interface DnsServerOptions {
  readonly address: string;
  readonly port: number;
  readonly dependencies: LookupDependencies;
  readonly forwarder: Forwarder;
  /** Reports whether queries from this address are answered. All others are dropped. */
  readonly mayAsk: (address: string) => boolean;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
}

const MAX_CONNECTIONS = 128;
const MAX_QUESTIONS_AT_ONCE = 1_000;
const IDLE_MS = 10_000;
/** A query has a few hundred bytes. */
const MAX_QUESTION_BYTES = 4_096;

/** Answers pods' queries: names of the cluster by itself, all others through the host's name servers. */
export class DnsServer {
  readonly #options: DnsServerOptions;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;
  readonly #connections = new Set<Socket>();
  #open = 0;

  private constructor(options: DnsServerOptions) {
    this.#options = options;
    this.#udp = createSocket(isIPv6(options.address) ? "udp6" : "udp4");
    this.#tcp = createServer((socket) => this.#serve(socket));
    this.#tcp.maxConnections = MAX_CONNECTIONS;
  }

  /**
   * Listens on the address. Rejects if that is impossible, for example because the host doesn't have the address yet.
   */
  static async open(options: DnsServerOptions): Promise<DnsServer> {
    const server = new DnsServer(options);
    const { address, port } = options;
    try {
      server.#udp.bind(port, address);
      await once(server.#udp, "listening");
      server.#tcp.listen(server.#udp.address().port, address);
      await once(server.#tcp, "listening");
    } catch (error) {
      await server.close();
      throw error;
    }
    server.#udp.on("message", (bytes, from) => {
      if (!options.mayAsk(from.address)) return;
      void server.#answer(bytes, "udp").then((answer) => {
        if (answer !== undefined) server.#udp.send(answer, from.port, from.address, () => undefined);
      });
    });
    server.#udp.on("error", () => undefined);
    server.#tcp.on("error", () => undefined);
    return server;
  }

  get port(): number {
    return this.#udp.address().port;
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.destroy();
    await Promise.all([
      new Promise<void>((resolve) => {
        try {
          this.#udp.close(() => resolve());
        } catch {
          resolve(); // The server was never open.
        }
      }),
      new Promise<void>((resolve) => this.#tcp.close(() => resolve())),
    ]);
  }

  async #answer(bytes: Buffer, protocol: "udp" | "tcp"): Promise<Buffer | undefined> {
    // Dropped, as on a full network: clients retry.
    if (this.#open >= MAX_QUESTIONS_AT_ONCE || bytes.length > MAX_QUESTION_BYTES) return undefined;
    this.#open++;
    try {
      const read = readQuery(bytes);
      if (read.type === "bad") return read.answer;
      const { query } = read;
      const { dependencies, forwarder } = this.#options;
      const found = lookUp(query.name, query.type, dependencies);
      const answer =
        found.type === "elsewhere"
          ? await forwarder.answer(query, bytes, protocol)
          : answerOf(query, this.#shuffled(found), domainOf(dependencies));
      return protocol === "udp" ? truncated(query, answer) : answer;
    } catch {
      return undefined;
    } finally {
      this.#open--;
    }
  }

  /** Shuffles the addresses, because clients use the first one. */
  #shuffled<L extends Exclude<ReturnType<typeof lookUp>, { type: "elsewhere" }>>(found: L): L {
    if (found.type !== "found" || found.records.length < 2) return found;
    const records = [...found.records];
    for (let i = records.length - 1; i > 0; i--) {
      const j = Math.floor(this.#options.random() * (i + 1));
      const [a, b] = [records[i], records[j]];
      if (a !== undefined && b !== undefined) [records[i], records[j]] = [b, a];
    }
    return { ...found, records };
  }

  #serve(socket: Socket): void {
    if (!this.#options.mayAsk(socket.remoteAddress ?? "")) return void socket.destroy();
    let received = Buffer.alloc(0);
    let turn = Promise.resolve();
    this.#connections.add(socket);
    socket.on("close", () => this.#connections.delete(socket));
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes) => {
      received = Buffer.concat([received, bytes]);
      while (received.length >= 2) {
        const length = received.readUInt16BE(0);
        if (length > MAX_QUESTION_BYTES) return void socket.destroy();
        if (received.length < length + 2) return;
        const question = Buffer.from(received.subarray(2, length + 2));
        received = received.subarray(length + 2);
        // Queries of a connection are answered one after the other, without reading ahead, so that a client can't pile
        // up work.
        socket.pause();
        turn = turn.then(async () => {
          const answer = await this.#answer(question, "tcp");
          if (answer === undefined) socket.destroy();
          else if (!socket.destroyed) socket.write(framed(answer));
          socket.resume();
        });
      }
    });
  }
}
