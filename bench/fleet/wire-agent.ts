import { connect as connectHttp2 } from "node:http2";
import { connect as connectTls, type SecureContext } from "node:tls";
import {
  AgentServiceService,
  type ConnectRequest,
  type ConnectResponse,
} from "@forage/proto/forage/agent/v1/agent";
import { Heartbeats } from "./heartbeats.ts";
import { helloOf, PodAnswers } from "./pod-answers.ts";

/** The limit of a real agent's link. */
const WELCOME_LIMIT_MS = 15_000;
/** The size of a message's header: a byte that states whether it is compressed, and its length. */
const HEAD_BYTES = 5;

export interface WireAgentOptions {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** The source address of the connection. */
  readonly localAddress: string;
  readonly context: SecureContext;
}

/**
 * An agent without a host on plain HTTP/2 of Node.js. It costs less than a client of grpc-js, and has its own source
 * address, as each host of a fleet has.
 */
export class WireAgent {
  readonly #options: WireAgentOptions;
  readonly #answers = new PodAnswers(() => {});

  constructor(options: WireAgentOptions) {
    this.#options = options;
  }

  /** Connects, and calls `onWelcome` once the coordinator has welcomed it. Resolves when the connection has ended. */
  async connect(onWelcome: () => void): Promise<void> {
    const { host, port, localAddress, context, name } = this.#options;
    // Node's type of these options lacks those of the TCP connection.
    const options = { host, port, localAddress, secureContext: context, ALPNProtocols: ["h2"] };
    const socket = connectTls(options);
    const session = connectHttp2(`https://${host}:${port}`, { createConnection: () => socket });
    const late = setTimeout(() => session.destroy(), WELCOME_LIMIT_MS);
    const ended = new Promise<void>((resolve) => session.once("close", resolve));
    session.on("error", () => {});
    const stream = session.request({
      ":method": "POST",
      ":path": AgentServiceService.connect.path,
      "content-type": "application/grpc+proto",
      te: "trailers",
    });
    stream.on("error", () => {}).once("close", () => session.destroy());
    const send = (message: ConnectRequest): void => void (stream.writable && stream.write(framed(message)));
    const heartbeats = new Heartbeats(send, () => session.destroy());
    const take = (response: ConnectResponse): void => {
      heartbeats.received(response);
      const { message } = response;
      if (message?.$case === "welcome") {
        clearTimeout(late);
        heartbeats.every(message.value.heartbeatIntervalMs);
        onWelcome();
      }
      if (message?.$case === "heartbeatInterval") heartbeats.every(message.value.intervalMs);
      const answer = this.#answers.answer(response);
      if (answer !== undefined) send(answer);
    };
    stream.on("data", messageReader(take));
    send({ message: { $case: "hello", value: helloOf(name, undefined, this.#answers.statuses()) } });
    await ended;
    clearTimeout(late);
    heartbeats.stop();
    socket.destroy();
  }
}

function framed(message: ConnectRequest): Buffer {
  const body = AgentServiceService.connect.requestSerialize(message);
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

function messageReader(take: (message: ConnectResponse) => void): (chunk: Buffer) => void {
  let unread: Buffer = Buffer.alloc(0);
  return (chunk) => {
    unread = Buffer.concat([unread, chunk]);
    while (unread.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + unread.readUInt32BE(1);
      if (unread.length < end) return;
      take(AgentServiceService.connect.responseDeserialize(unread.subarray(HEAD_BYTES, end)));
      unread = unread.subarray(end);
    }
  };
}
