import { createHash, randomBytes } from "node:crypto";
import { type IncomingMessage, request, type Server } from "node:http";
import type { Duplex } from "node:stream";

/** Echoes all bytes once the connection has been upgraded. */
export function echoUpgrades(server: Server): void {
  server.on("upgrade", (asked: IncomingMessage, socket: Duplex, head: Buffer) => {
    const accept = createHash("sha1")
      .update(`${asked.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest("base64");
    socket.on("error", () => undefined);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.write(head);
    socket.pipe(socket);
  });
}

/** A connection by the WebSocket protocol, of which only the handshake is used. */
export class EchoSocket {
  readonly #socket: Duplex;
  /** The reason of the end. Undefined while open. */
  ended: string | undefined;
  #heard = "";
  #listen: (() => void) | undefined;

  private constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#heard += bytes.toString();
      this.#listen?.();
    });
    const end = (why: string) => () => {
      this.ended ??= why;
      this.#listen?.();
    };
    socket.on("end", end("ended")).on("close", end("closed")).on("error", end("failed"));
  }

  static open(port: number, host: string, path = "/"): Promise<EchoSocket> {
    return new Promise((resolve, reject) => {
      const asking = request({
        ...{ host: "127.0.0.1", port, path, agent: false },
        headers: {
          ...{ host, connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
          "sec-websocket-key": randomBytes(16).toString("base64"),
        },
      });
      asking.on("upgrade", (_, socket) => resolve(new EchoSocket(socket)));
      asking.on("response", ({ statusCode }) => reject(new Error(`answered with ${statusCode}`)));
      asking.on("error", reject);
      asking.end();
    });
  }

  /** Sends text. Rejects unless all of it is echoed. */
  async echo(text: string): Promise<void> {
    this.#heard = "";
    this.#socket.write(text);
    while (this.#heard.length < text.length && this.ended === undefined)
      await new Promise<void>((resolve) => {
        this.#listen = resolve;
      });
    if (this.#heard !== text) throw new Error(`received "${this.#heard}", ${this.ended ?? "open"}`);
  }

  close(): void {
    this.ended ??= "closed by us";
    this.#socket.destroy();
  }
}
