import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { messageOf } from "@forage/common/message-of";
import { type RefuseAddress, reachableAddress } from "./reachable.ts";

// Eight concurrent initializers with a few connections each.
const CONNECTIONS_MAX = 128;
// git itself ends a stalled transfer after two minutes.
const IDLE_MS = 180_000;
const HTTPS_PORT = 443;
const HTTP_PORT = 80;

/**
 * The HTTP proxy on this host's loopback interface through which git connects. It resolves each name itself and rejects
 * addresses that initializers must not reach. Redirects and changed DNS records therefore don't lead there either.
 */
export class EgressProxy {
  readonly #server: Server;
  readonly #refuse: RefuseAddress;
  readonly #sockets = new Set<Duplex>();

  private constructor(refuse: RefuseAddress) {
    this.#refuse = refuse;
    this.#server = createServer((incoming, outgoing) => void this.#forward(incoming, outgoing));
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.on("connect", (incoming, socket, head) => void this.#tunnel(incoming, socket, head));
    this.#server.on("connection", (socket) => this.#track(socket));
  }

  static async open(refuse: RefuseAddress): Promise<EgressProxy> {
    const proxy = new EgressProxy(refuse);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #tunnel(incoming: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const target = URL.canParse(`http://${incoming.url}`) ? new URL(`http://${incoming.url}`) : undefined;
    try {
      if (target === undefined) throw new Error("the target must be HOST:PORT");
      const host = await reachableAddress(target.hostname, this.#refuse);
      const server = connect({ host, port: Number(target.port || HTTPS_PORT) });
      this.#track(server);
      server.once("connect", () => {
        client.write("HTTP/1.1 200 Connection established\r\n\r\n");
        server.write(head);
        server.pipe(client).pipe(server);
      });
      server.on("error", () => client.destroy());
      client.on("error", () => server.destroy());
      for (const [one, other] of [[client, server] as const, [server, client] as const])
        one.once("close", () => other.destroy());
    } catch (error) {
      client.end(`HTTP/1.1 403 ${reasonPhrase(error)}\r\nConnection: close\r\n\r\n`);
    }
  }

  async #forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const target = URL.canParse(incoming.url ?? "") ? new URL(incoming.url ?? "") : undefined;
    try {
      if (target?.protocol !== "http:") throw new Error("the target must be an absolute http URL");
      const host = await reachableAddress(target.hostname, this.#refuse);
      const passed = Object.entries(incoming.headers).filter(([name]) => !name.startsWith("proxy-"));
      const headers = { ...Object.fromEntries(passed), host: target.host };
      const upstream = request({
        ...{ host, port: Number(target.port || HTTP_PORT), method: incoming.method, headers },
        path: target.pathname + target.search,
        agent: false,
      });
      upstream.on("socket", (socket) => this.#track(socket));
      upstream.on("response", (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      });
      upstream.on("error", () => outgoing.destroy());
      outgoing.once("close", () => upstream.destroy());
      incoming.pipe(upstream);
    } catch (error) {
      outgoing.writeHead(403, reasonPhrase(error), { connection: "close" }).end();
    }
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

function reasonPhrase(error: unknown): string {
  return messageOf(error).replaceAll(/[^\x20-\x7e]/g, "?");
}
