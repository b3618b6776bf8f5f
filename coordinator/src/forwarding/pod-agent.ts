import { Agent, type ClientRequest, type ClientRequestArgs } from "node:http";
import { Duplex } from "node:stream";
import type { Clock } from "@forage/common/clock";
import type { DialPod, PodPlace } from "./dial-pod.ts";

/** A connection to a pod is kept this long for its next request. */
const IDLE_MS = 15_000;
/** Kept connections of all pods. Each is a session of an agent. */
const MAX_IDLE = 100;

/**
 * Keeps connections to ports of pods, which run through the agents' sessions, and reuses them for further requests. Requests beyond
 * `connectionsPerPort` wait for a connection to that port.
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

  /** Called by Node before it keeps a connection. An idle connection holds a session of its agent, so it ends soon. */
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

  /** The options of a request to a port of a pod. */
  target({ node, uid }: PodPlace, port: number): ClientRequestArgs {
    // The agent groups its connections by these three.
    return { host: node, port, localAddress: uid, agent: this };
  }

  override createConnection(
    { host, port, localAddress }: ClientRequestArgs,
    done: (error: Error | null, stream: Duplex) => void,
  ): Duplex | undefined {
    try {
      return this.#dial({ node: String(host), uid: String(localAddress) }, Number(port));
    } catch (error) {
      // The agent connects for waiting requests as well, where nothing would catch an error. With one, it ignores the stream.
      done(
        error instanceof Error ? error : new Error("the connection failed", { cause: error }),
        new Duplex(),
      );
      return undefined;
    }
  }
}
