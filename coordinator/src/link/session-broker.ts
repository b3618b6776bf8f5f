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
  /** Asks an agent to open a stream. */
  readonly sessions: Pick<Sessions, "request">;
  readonly clock: Clock;
  readonly randomName: (length: number) => string;
}

/** Frames on their way in each direction; at 32 KiB or so each, a few hundred KiB a session. */
const CHANNEL_CAPACITY = 16;
/** The agent's own stream is up, so its answer takes a round trip; beyond this it is stuck. */
const OPEN_TIMEOUT_MS = 10_000;
/** Sessions at one time, over all nodes. */
const MAX_TUNNELS = 1_000;
/** As for the connections to workspaces: half of the places for one caller. */
const MAX_TUNNELS_OF_CALLER = 500;
/** Half of the requests that may wait for one agent (`MAX_REQUESTS` of its session). */
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
   * Requests a session from the node. The tunnel's reading end fails if the agent does not open it. `caller` names who opens it: no
   * caller can take all places.
   *
   * @throws CoordinatorError RESOURCE_EXHAUSTED, and UNAVAILABLE when the node isn't connected.
   */
  open(
    node: string,
    request: Omit<SessionRequest, "sessionId">,
    signal: AbortSignal,
    caller: string,
  ): Tunnel {
    this.#assertMayWait(node, caller);
    const release = this.#places.take(caller);
    const sessionId = this.#options.randomName(20);
    const tunnel: Tunnel = {
      toAgent: new Channel(CHANNEL_CAPACITY),
      fromAgent: new Channel(CHANNEL_CAPACITY),
    };
    const giveUp = (error: unknown): void => {
      cancelTimeout();
      // A session that the agent has opened gives its place back when the agent's stream has ended.
      if (this.#waiting.delete(sessionId)) release();
      tunnel.fromAgent.close(error);
      tunnel.toAgent.close();
    };
    const cancelTimeout = this.#options.clock.schedule(OPEN_TIMEOUT_MS, () =>
      giveUp(
        new CoordinatorError(
          "UNAVAILABLE",
          `node ${node} did not open the session within ${OPEN_TIMEOUT_MS / 1000} s`,
        ),
      ),
    );
    this.#waiting.set(sessionId, { node, caller, tunnel, cancelTimeout, release });
    signal.addEventListener("abort", () => giveUp(undefined), { once: true });
    if (signal.aborted) giveUp(undefined);
    try {
      this.#options.sessions.request(node, { ...request, sessionId });
    } catch (error) {
      giveUp(undefined);
      throw error;
    }
    return tunnel;
  }

  /** Returns whether a client waits for the agent to open this session. */
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

  /** Serves an agent's stream for a session that it was asked to open. */
  async *serve(requests: AsyncIterable<ServeRequest>, context: CallContext): AsyncGenerator<ServeResponse> {
    const incoming = requests[Symbol.asyncIterator]();
    const first = await incoming.next();
    const frame = first.done ? undefined : first.value.frame;
    if (frame?.$case !== "sessionId")
      throw new CoordinatorError("INVALID", "the first frame must be the session's id");
    const waiting = this.#waiting.get(frame.value);
    if (waiting === undefined || context.caller.kind !== "node" || waiting.node !== context.caller.nodeId) {
      throw new CoordinatorError("NOT_FOUND", "no client waits for this session");
    }
    this.#waiting.delete(frame.value);
    waiting.cancelTimeout();
    const { toAgent, fromAgent } = waiting.tunnel;
    // The client going away closes `toAgent`: the agent's stream then ends, whatever it is doing.
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
