import { createServer, connect as dial, type Server, type Socket } from "node:net";

/** A relay on loopback that can cut two programs off from each other. */
export class TcpRelay {
  readonly #server: Server;
  readonly #target: () => { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  static async start(target: () => { readonly host: string; readonly port: number }): Promise<TcpRelay> {
    const relay = new TcpRelay(target);
    await new Promise<void>((resolve, reject) => {
      relay.#server.once("error", reject);
      relay.#server.listen(0, "127.0.0.1", resolve);
    });
    return relay;
  }

  private constructor(target: () => { readonly host: string; readonly port: number }) {
    this.#target = target;
    this.#server = createServer((socket) => this.#take(socket));
  }

  /** The address of the relay as HOST:PORT. */
  get address(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the relay does not listen");
    return `127.0.0.1:${address.port}`;
  }

  /** The number of open connections on both sides of the relay. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Drops everything in both directions without an error for either side, like lost packets. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Accepts new connections again. Old ones are ended because they have lost data. */
  mend(): void {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #take(incoming: Socket): void {
    this.#hold(incoming);
    if (this.#isCut) {
      incoming.pause();
      return;
    }
    const outgoing = dial(this.#target());
    this.#hold(outgoing);
    for (const [from, to] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      // A pipe would resume a paused socket.
      from.on("data", (bytes) => {
        if (!to.write(bytes) && !this.#isCut) from.pause();
      });
      to.on("drain", () => {
        if (!this.#isCut) from.resume();
      });
      from.on("end", () => to.end());
      from.on("close", () => to.destroy());
    }
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
