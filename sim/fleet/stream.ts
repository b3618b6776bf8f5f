import { messageOf } from "@forage/common/message-of";
import type { ConnectRequest, ConnectResponse } from "@forage/proto/forage/agent/v1/agent";
import { type NodeLink, Pipe } from "./network.ts";
import type { ProcessGate } from "./process-gate.ts";

type AgentMessage = NonNullable<ConnectRequest["message"]>;
export type CoordinatorMessage = NonNullable<ConnectResponse["message"]>;

/** Handles one stream, as the coordinator's handler does. `sendNow` is that of a call's context. */
export type Handler = (
  requests: AsyncIterable<ConnectRequest>,
  gone: AbortSignal,
  sendNow: (message: unknown) => boolean,
) => AsyncIterable<ConnectResponse>;

export interface StreamOptions {
  readonly way: NodeLink;
  readonly onMessage: (message: CoordinatorMessage) => void;
  /** Called when the coordinator has ended the stream. */
  readonly onEnd: (why: string) => void;
}

/** One Connect stream. Either side may be dead long before the other notices. */
export class SimStream {
  readonly #up: Pipe<AgentMessage>;
  readonly #down: Pipe<() => void>;
  readonly #options: StreamOptions;
  readonly #gone = new AbortController();
  readonly #received: ConnectRequest[] = [];
  #wake: () => void = () => {};
  #left = false;
  #gate: ProcessGate | undefined;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#up = new Pipe(options.way, "up", (message) => this.#receive({ message }));
    this.#down = new Pipe(options.way, "down", (run) => run());
  }

  /** Connects the coordinator's side. `dead` is aborted when its process dies. */
  serve(handler: Handler, dead: AbortSignal, gate: ProcessGate): void {
    this.#gate = gate;
    const lost = (): void => this.#reset("the coordinator is gone");
    dead.addEventListener("abort", lost, { once: true });
    void this.#answer(handler, dead).finally(() => dead.removeEventListener("abort", lost));
  }

  /** Sends a message of the agent. */
  say(message: AgentMessage): void {
    this.#up.send(message);
  }

  /** Closes the stream from the agent's side. Earlier messages may still arrive until the coordinator notices. */
  leave(noticedLater: (notice: () => void) => void): void {
    this.#left = true;
    this.#down.close();
    noticedLater(() =>
      this.#input(() => {
        this.#up.close();
        this.#gone.abort();
        this.#wake();
      }),
    );
  }

  async #answer(handler: Handler, dead: AbortSignal): Promise<void> {
    const isOver = (): boolean => dead.aborted || this.#gone.signal.aborted;
    const send = ({ message }: ConnectResponse): void => {
      if (message !== undefined) this.#down.send(() => this.#options.onMessage(message));
    };
    const sendNow = (response: unknown): boolean => {
      if (!isOver()) send(response as ConnectResponse);
      return !isOver();
    };
    try {
      for await (const response of handler(this.#requests(), this.#gone.signal, sendNow)) {
        if (isOver()) break;
        send(response);
      }
      this.#reset("it has ended");
    } catch (error) {
      if (!dead.aborted) this.#reset(messageOf(error));
    }
  }

  /** Ends the agent's side after everything that was sent before. */
  #reset(why: string): void {
    this.#up.close();
    this.#down.send(() => {
      if (!this.#left) this.#options.onEnd(why);
    });
  }

  #receive(request: ConnectRequest): void {
    this.#input(() => {
      this.#received.push(request);
      this.#wake();
    });
  }

  /** Delivers input to the coordinator. It waits while the coordinator is paused. */
  #input(run: () => void): void {
    if (this.#gate === undefined) run();
    else this.#gate.input(run);
  }

  async *#requests(): AsyncGenerator<ConnectRequest> {
    for (;;) {
      const next = this.#received.shift();
      if (next !== undefined) yield next;
      else if (this.#gone.signal.aborted) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}
