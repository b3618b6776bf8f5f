import { AgentServiceClient, type ConnectRequest } from "@forage/proto/forage/agent/v1/agent";
import {
  Channel,
  credentials,
  InterceptingCall,
  type InterceptingListener,
  Metadata,
  status,
} from "@grpc/grpc-js";
import type { AcceptingCoordinator } from "./fleet/fleet-node.ts";
import type { NodeLink } from "./fleet/network.ts";
import { type CoordinatorMessage, SimStream } from "./fleet/stream.ts";

export interface SimulatedChannel {
  readonly way: NodeLink;
  /** Returns the coordinator that accepts calls, if there is one. */
  readonly dial: () => AcceptingCoordinator | undefined;
  /** Calls `notice` at the time when the coordinator notices that a stream has ended. */
  readonly noticed: (notice: () => void) => void;
  /** Calls `run` after the delay, unless the agent is dead. */
  readonly later: (delayMs: number, run: () => void) => void;
  readonly opened: (call: SimulatedCall) => void;
  readonly closed: (call: SimulatedCall) => void;
  /** Called for each message that arrives at the agent. */
  readonly received: (message: CoordinatorMessage) => void;
}

/** The interface through which grpc-js drives a call. grpc-js does not export the type. */
type CallInterface = ConstructorParameters<typeof InterceptingCall>[0];
type MessageContext = Parameters<CallInterface["sendMessageWithContext"]>[0];

/**
 * A channel of grpc-js that no call uses. Its construction takes longer than a whole call, so all clients share one.
 */
class UnusedChannel extends Channel {
  override close(): void {}

  override createCall(): never {
    throw new Error("calls of the simulation don't use the channel");
  }
}

const CHANNEL = new UnusedChannel("sim:1", credentials.createInsecure(), {});

/** Returns a client of the agent's service whose streams go over a simulated connection. */
export function simulatedClient(channel: SimulatedChannel): AgentServiceClient {
  return new AgentServiceClient("sim:1", credentials.createInsecure(), {
    interceptors: [() => new InterceptingCall(new SimulatedCall(channel))],
    channelOverride: CHANNEL,
  });
}

/** One Connect stream as grpc-js drives it. */
export class SimulatedCall implements CallInterface {
  readonly #channel: SimulatedChannel;
  readonly #received: unknown[] = [];
  #stream: SimStream | undefined;
  #listener: Partial<InterceptingListener> | undefined;
  #reads = 0;
  #ending: { readonly code: status; readonly details: string } | undefined;
  #ended = false;

  constructor(channel: SimulatedChannel) {
    this.#channel = channel;
  }

  start(_metadata: Metadata, listener?: Partial<InterceptingListener>): void {
    this.#listener = listener;
    const { way, dial, later, opened, received } = this.#channel;
    const server = way.open ? dial() : undefined;
    if (server === undefined) {
      later(way.delayMs(), () => this.fail("no coordinator answers"));
      return;
    }
    const stream = new SimStream({
      way,
      onMessage: (message) => {
        received(message);
        this.#received.push({ message });
        this.#deliver();
      },
      onEnd: (why) => this.fail(why),
    });
    this.#stream = stream;
    opened(this);
    stream.serve(server.handler, server.dead, server.gate);
  }

  sendMessageWithContext(context: MessageContext, { message }: ConnectRequest): void {
    if (message !== undefined && !this.#ended) this.#stream?.say(message);
    context.callback?.();
  }

  sendMessage(message: ConnectRequest): void {
    this.sendMessageWithContext({}, message);
  }

  startRead(): void {
    this.#reads++;
    this.#deliver();
  }

  halfClose(): void {}

  cancelWithStatus(code: status, details: string): void {
    this.#end(code, details);
    this.#received.length = 0;
    this.#deliver();
  }

  /** Breaks the connection. */
  fail(why: string): void {
    this.#end(status.UNAVAILABLE, why);
    this.#deliver();
  }

  /** Ends the agent's side without a callback, because the agent is dead. */
  abandon(): void {
    this.#listener = undefined;
    this.#end(status.UNAVAILABLE, "the agent is dead");
  }

  getPeer(): string {
    return "sim";
  }

  getAuthContext(): null {
    return null;
  }

  #end(code: status, details: string): void {
    if (this.#ending !== undefined) return;
    this.#ending = { code, details };
    this.#stream?.leave(this.#channel.noticed);
    this.#channel.closed(this);
  }

  #deliver(): void {
    const listener = this.#listener;
    while (this.#reads > 0 && this.#received.length > 0) {
      this.#reads--;
      listener?.onReceiveMessage?.(this.#received.shift());
    }
    if (this.#ending === undefined || this.#ended || this.#received.length > 0) return;
    this.#ended = true;
    listener?.onReceiveStatus?.({ ...this.#ending, metadata: new Metadata() });
  }
}
