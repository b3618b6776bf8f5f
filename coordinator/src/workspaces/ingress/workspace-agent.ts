import { Agent, type ClientRequestArgs } from "node:http";
import { Duplex } from "node:stream";
import type { DialPod, PodPlace } from "../access/dial-workspace.ts";

export interface WorkspaceAgentLimits {
  /** Connections to one port of one pod. Further requests wait for one of them. */
  readonly connectionsPerPort: number;
  /** Connections to all pods. */
  readonly connections: number;
}

/** A connection to a pod is kept this long for its next request. */
const IDLE_MS = 15_000;

/** Keeps connections to ports of pods, which run through the agents' sessions, and reuses them for further requests. */
export class WorkspaceAgent extends Agent {
  readonly #dial: DialPod;

  constructor(dial: DialPod, { connectionsPerPort, connections }: WorkspaceAgentLimits) {
    super({
      keepAlive: true,
      keepAliveMsecs: IDLE_MS,
      maxSockets: connectionsPerPort,
      maxTotalSockets: connections,
      maxFreeSockets: Math.ceil(connectionsPerPort / 4),
      scheduling: "lifo",
    });
    this.#dial = dial;
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
