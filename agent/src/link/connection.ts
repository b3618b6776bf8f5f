import type {
  AgentServiceClient,
  ConnectRequest,
  ConnectResponse,
  Hello,
  NodeReport,
  Welcome,
} from "@forage/proto/forage/agent/v1/agent";
import { type ClientDuplexStream, connectivityState } from "@grpc/grpc-js";
import type { Clock } from "../clock.ts";
import { AnswerWatch } from "./answer-watch.ts";
import { toLinkError } from "./client.ts";
import { LinkError } from "./link-error.ts";

export type CoordinatorMessage = NonNullable<ConnectResponse["message"]>;
export type AgentMessage = NonNullable<ConnectRequest["message"]>;

const WELCOME_TIMEOUT_MS = 15_000;

export interface OpenOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The time limit for connecting, which is part of the limit for the welcome. Default: no separate limit. */
  readonly connectLimitMs?: number | undefined;
}

interface Welcomed {
  readonly welcome: Welcome;
  readonly reported: NodeReport | undefined;
  readonly clock: Clock;
}

/** A Connect stream on its own channel, from hello to end. */
export class Connection {
  readonly client: AgentServiceClient;
  readonly welcome: Welcome;
  /** The interval between heartbeats, first from the welcome. The coordinator may change it later. */
  heartbeatIntervalMs: number;
  /** The monotonic time before which the coordinator expects no heartbeat. */
  heartbeatAtMs = Number.NEGATIVE_INFINITY;
  /** The node's report in the hello. */
  readonly reported: NodeReport | undefined;
  readonly #call: ClientDuplexStream<ConnectRequest, ConnectResponse>;
  readonly #messages: AsyncIterator<ConnectResponse>;
  readonly #answers: AnswerWatch | undefined;
  /** Whether the next message is awaited, and not the last one processed. */
  #isReading = false;
  #closed = false;
  #isSilent = false;

  private constructor(
    client: AgentServiceClient,
    call: ClientDuplexStream<ConnectRequest, ConnectResponse>,
    messages: AsyncIterator<ConnectResponse>,
    { welcome, reported, clock }: Welcomed,
  ) {
    this.client = client;
    this.reported = reported;
    this.#call = call;
    this.#messages = messages;
    this.welcome = welcome;
    this.heartbeatIntervalMs = welcome.heartbeatIntervalMs;
    if (welcome.answersHeartbeats)
      this.#answers = new AnswerWatch({
        clock,
        isBusy: () => !this.#isReading,
        onSilence: () => {
          this.#isSilent = true;
          call.cancel();
        },
      });
  }

  /**
   * Opens the connection: sends the hello and waits for the welcome. Closes the client if that fails; otherwise `close`
   * does so. Rejects with a LinkError.
   */
  static async open(
    client: AgentServiceClient,
    hello: Hello,
    { clock, signal, connectLimitMs }: OpenOptions,
  ): Promise<Connection> {
    const call = client.connect();
    const cancel = () => call.cancel();
    const cancelTimeout = clock.schedule(WELCOME_TIMEOUT_MS, cancel);
    let isLate = false;
    const cancelLimit =
      connectLimitMs === undefined
        ? () => {}
        : clock.schedule(connectLimitMs, () => {
            isLate = client.getChannel().getConnectivityState(false) !== connectivityState.READY;
            if (isLate) cancel();
          });
    signal.addEventListener("abort", cancel, { once: true });
    try {
      if (signal.aborted) cancel();
      call.write({ message: { $case: "hello", value: hello } });
      const messages = call[Symbol.asyncIterator]() as AsyncIterator<ConnectResponse>;
      const first = await messages.next();
      const message = first.done ? undefined : first.value.message;
      if (message?.$case !== "welcome")
        throw new LinkError("PROTOCOL", "the coordinator's first message was not a welcome");
      const welcome = message.value;
      return new Connection(client, call, messages, { welcome, reported: hello.node, clock });
    } catch (error) {
      call.on("error", () => undefined);
      call.cancel();
      client.close();
      if (isLate) throw new LinkError("UNAVAILABLE", `no connection within ${connectLimitMs} ms`);
      throw toLinkError(error);
    } finally {
      cancelTimeout();
      cancelLimit();
      signal.removeEventListener("abort", cancel);
    }
  }

  /**
   * Yields received messages one at a time, each after the previous one was processed. Ends when the connection is
   * closed, and rejects on any other end.
   */
  async *messages(): AsyncGenerator<CoordinatorMessage> {
    try {
      while (!this.#closed) {
        this.#isReading = true;
        const next = await this.#messages.next();
        this.#isReading = false;
        this.#answers?.received();
        if (next.done) break;
        if (next.value.message !== undefined) yield next.value.message;
      }
    } catch (error) {
      if (this.#closed) return;
      if (this.#isSilent) throw new LinkError("UNAVAILABLE", "the coordinator answers no heartbeats");
      throw toLinkError(error);
    } finally {
      this.#answers?.close();
    }
    if (!this.#closed) throw new LinkError("UNAVAILABLE", "the coordinator ended the stream");
  }

  /** Returns whether the heartbeat that is about to be sent has to request an answer. */
  requestsAnswer(): boolean {
    return this.#answers?.request(this.heartbeatIntervalMs) ?? false;
  }

  /**
   * Sends a message. Resolves when there is room for more, so that a slow connection slows down its writers instead of
   * filling memory.
   */
  async send(message: AgentMessage): Promise<void> {
    if (this.#closed || this.#call.destroyed || this.#call.write({ message })) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        for (const name of ["drain", "close", "error", "end"]) this.#call.off(name, done);
        resolve();
      };
      for (const name of ["drain", "close", "error", "end"]) this.#call.on(name, done);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#answers?.close();
    this.#call.on("error", () => undefined);
    this.#call.end();
    this.#call.cancel();
    this.client.close();
  }
}
