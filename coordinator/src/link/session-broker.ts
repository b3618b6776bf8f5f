import type { ServeRequest, ServeResponse, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../errors.ts";
import type { CallContext } from "../rpc/caller.ts";
import { Shares } from "../rpc/shares.ts";
import type { Clock } from "../time/clock.ts";
import { Channel } from "./channel.ts";
import type { Sessions } from "./sessions.ts";

/** The two directions of one log or exec session, between a client's call and an agent's stream. */
export interface Tunnel {
  readonly toAgent: Channel<ServeResponse>;
  readonly fromAgent: Channel<ServeRequest>;
}

export interface SessionBrokerOptions {
  /** Requests streams from agents. */
  readonly sessions: Pick<Sessions, "request">;
  readonly clock: Clock;
  readonly randomName: (length: number) => string;
}

/** The limit of frames in transit in each direction. With about 32 KiB each, a session uses a few hundred KiB. */
const CHANNEL_CAPACITY = 16;
/** The limit of the wait for the agent's stream. The agent is connected, so its response takes one round trip. */
const OPEN_TIMEOUT_MS = 10_000;
/** The limit of concurrent sessions over all nodes. */
const MAX_TUNNELS = 1_000;
/** The limit of concurrent sessions of one caller: half of them, as for connections to workspaces. */
const MAX_TUNNELS_OF_CALLER = 500;
/** The limit of one caller's requests that wait for one agent: half of `MAX_REQUESTS` of its session. */
const MAX_WAITING_OF_CALLER = 32;

interface Waiting {
  readonly node: string;
  readonly caller: string;
  readonly tunnel: Tunnel;
  readonly cancelTimeout: () => void;
  readonly release: () => void;
}

/** Connects clients' log and exec calls with the streams that agents open for them. */
export class SessionBroker {
  readonly #options: SessionBrokerOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #places = new Shares({
    what: "log and exec sessions that are open",
    total: MAX_TUNNELS,
    ofUser: MAX_TUNNELS_OF_CALLER,
  });

  constructor(options: SessionBrokerOptions) {
    this.#options = options;
  }

  /**
   * Requests a session from the node. The receiving end of the tunnel fails if the agent doesn't open the session. `caller`
   * identifies the caller, who can't use all sessions. @throws CoordinatorError RESOURCE_EXHAUSTED, and UNAVAILABLE if the
   * node isn't connected.
   */
  open(
    node: string,
    request: Omit<SessionRequest, "sessionId">,
    signal: AbortSignal,
    caller: string,
  ): Tunnel {
    this.#assertMayWait(node, caller);
    const release = this.#places.acquire(caller);
    const sessionId = this.#options.randomName(20);
    const tunnel: Tunnel = {
      toAgent: new Channel(CHANNEL_CAPACITY),
      fromAgent: new Channel(CHANNEL_CAPACITY),
    };
    const cancel = (error: unknown): void => {
      cancelTimeout();
      // A session that the agent has opened counts until the agent's stream has ended.
      if (this.#waiting.delete(sessionId)) release();
      tunnel.fromAgent.close(error);
      tunnel.toAgent.close();
    };
    const cancelTimeout = this.#options.clock.schedule(OPEN_TIMEOUT_MS, () =>
      cancel(
        new CoordinatorError(
          "UNAVAILABLE",
          `node ${node} did not open the session within ${OPEN_TIMEOUT_MS / 1000} s`,
        ),
      ),
    );
    this.#waiting.set(sessionId, { node, caller, tunnel, cancelTimeout, release });
    signal.addEventListener("abort", () => cancel(undefined), { once: true });
    if (signal.aborted) cancel(undefined);
    try {
      this.#options.sessions.request(node, { ...request, sessionId });
    } catch (error) {
      cancel(undefined);
      throw error;
    }
    return tunnel;
  }

  /** Reports whether a client waits for the agent to open this session. */
  awaits(sessionId: string): boolean {
    return this.#waiting.has(sessionId);
  }

  #assertMayWait(node: string, caller: string): void {
    let own = 0;
    for (const waiting of this.#waiting.values())
      if (waiting.node === node && waiting.caller === caller) own += 1;
    if (own < MAX_WAITING_OF_CALLER) return;
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `${own} log and exec sessions of this token wait for node ${node}, which is the limit; try again later`,
    );
  }

  /** Serves an agent's stream for a requested session. */
  async *serve(requests: AsyncIterable<ServeRequest>, context: CallContext): AsyncGenerator<ServeResponse> {
    const incoming = requests[Symbol.asyncIterator]();
    const first = await incoming.next();
    const frame = first.done ? undefined : first.value.frame;
    if (frame?.$case !== "sessionId")
      throw new CoordinatorError("INVALID", "the first frame must be the session's id");
    const waiting = this.#waiting.get(frame.value);
    if (waiting === undefined || context.caller.type !== "node" || waiting.node !== context.caller.nodeId) {
      throw new CoordinatorError("NOT_FOUND", "no client waits for this session");
    }
    this.#waiting.delete(frame.value);
    waiting.cancelTimeout();
    const { toAgent, fromAgent } = waiting.tunnel;
    // When the client leaves, it closes `toAgent`, which ends the agent's stream.
    void pump(incoming, fromAgent).finally(() => toAgent.close());
    try {
      yield* toAgent;
    } finally {
      waiting.release();
      fromAgent.close(new CoordinatorError("UNAVAILABLE", "the agent's stream broke"));
      toAgent.close();
    }
  }
}

async function pump(incoming: AsyncIterator<ServeRequest>, channel: Channel<ServeRequest>): Promise<void> {
  while (true) {
    const next = await incoming.next();
    if (next.done) return;
    const open = await channel.push(next.value);
    if (!open) return;
    if (next.value.frame?.$case === "end") return channel.close();
  }
}
