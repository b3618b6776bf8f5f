import { Agent, type ClientRequest, type ClientRequestArgs } from "node:http";
import { Duplex } from "node:stream";
import type { Clock } from "@forage/common/clock";
import type { DialPod, PodPlace } from "./dial-pod.ts";

/** The time for which an idle connection to a pod is kept for the next request. */
const IDLE_MS = 15_000;
/** The limit of idle connections to all pods. Each uses a session of an agent. */
const MAX_IDLE = 100;

/**
 * An HTTP agent that connects to ports of pods through the sessions of their nodes' agents, and reuses connections.
 * Requests beyond `connectionsPerPort` wait for a connection to the port.
 */
export class PodAgent extends Agent {
  readonly #dial: DialPod;
  readonly #clock: Pick<Clock, "schedule">;
  readonly #idle = new Map<Duplex, () => void>();

  constructor(dial: DialPod, connectionsPerPort: number, clock: Pick<Clock, "schedule">) {
    super({
      keepAlive: true,
      maxSockets: connectionsPerPort,
      maxFreeSockets: Math.ceil(connectionsPerPort / 4),
      scheduling: "lifo",
    });
    this.#dial = dial;
    this.#clock = clock;
  }

  /**
   * Called by Node before it keeps a connection. Limits how long an idle connection is kept, because it uses a session of
   * the agent.
   */
  override keepSocketAlive(stream: Duplex): boolean {
    if (this.#idle.size >= MAX_IDLE) return false;
    const cancel = this.#clock.schedule(IDLE_MS, () => stream.destroy());
    this.#idle.set(stream, cancel);
    stream.once("close", () => this.#inUse(stream));
    return true;
  }

  override reuseSocket(stream: Duplex, request: ClientRequest): void {
    this.#inUse(stream);
    super.reuseSocket(stream, request);
  }

  #inUse(stream: Duplex): void {
    this.#idle.get(stream)?.();
    this.#idle.delete(stream);
  }

  /** Returns the options of a request to a port of a pod. */
  target({ node, uid }: PodPlace, port: number): ClientRequestArgs {
    // The HTTP agent groups its connections by these three options.
    return { host: node, port, localAddress: uid, agent: this };
  }

  override createConnection(
    { host, port, localAddress }: ClientRequestArgs,
    done: (error: Error | null, stream: Duplex) => void,
  ): Duplex | undefined {
    try {
      return this.#dial({ node: String(host), uid: String(localAddress) }, Number(port));
    } catch (error) {
      // The HTTP agent also connects for waiting requests, where errors would not be caught. If it gets an error, it
      // ignores the stream.
      done(
        error instanceof Error ? error : new Error("the connection failed", { cause: error }),
        new Duplex(),
      );
      return undefined;
    }
  }
}
