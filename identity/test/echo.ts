import * as grpc from "@grpc/grpc-js";
import type { Peer, TlsServer } from "../src/tls-server/tls-server.ts";

const raw = (bytes: Buffer): Buffer => bytes;

function method(name: string, stream: boolean) {
  return {
    path: `/test.Echo/${name}`,
    requestStream: stream,
    responseStream: stream,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  } as const;
}

/** `Who` answers with the caller's peer as JSON and its bearer token; `Talk` echoes each message. */
const service = { Who: method("Who", false), Talk: method("Talk", true) };

export interface Answer {
  readonly peer: Peer;
  readonly interceptorPeer: Peer;
  readonly authorization: string;
  readonly certificateShown: boolean;
}

export interface Talks {
  started: number;
  ended: number;
}

/** Returns a server whose handlers and interceptor both report the caller. */
export function anEchoServer(tls: () => TlsServer, talks: Talks = { started: 0, ended: 0 }): grpc.Server {
  const seen: Peer[] = [];
  const server = new grpc.Server({
    interceptors: [
      (_definition, call) =>
        new grpc.ServerInterceptingCall(call, {
          start: (next) => {
            seen.push(tls().peerOf(call));
            next();
          },
        }),
    ],
  });
  server.addService(service, {
    Who: (call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
      const authorization = String(call.metadata.get("authorization")[0] ?? "");
      const certificateShown = call.getAuthContext().sslPeerCertificate !== undefined;
      const peer = tls().peerOf(call);
      done(
        null,
        Buffer.from(JSON.stringify({ peer, interceptorPeer: seen.at(-1), authorization, certificateShown })),
      );
    },
    Talk: (call: grpc.ServerDuplexStream<Buffer, Buffer>) => {
      talks.started += 1;
      call.on("data", (bytes: Buffer) => call.write(bytes));
      call.on("end", () => call.end());
      call.on("error", () => {});
      call.on("cancelled", () => {
        talks.ended += 1;
      });
    },
  });
  return server;
}

export class EchoClient {
  readonly #client: grpc.Client;

  constructor(port: number, credentials: grpc.ChannelCredentials, host = "localhost") {
    this.#client = new grpc.Client(`${host}:${port}`, credentials, {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
    });
  }

  async who(metadata = new grpc.Metadata(), deadlineMs = 5_000): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + deadlineMs };
      this.#client.makeUnaryRequest(
        "/test.Echo/Who",
        raw,
        raw,
        Buffer.from("?"),
        metadata,
        options,
        (error, answer) => {
          if (error) reject(error);
          else resolve(JSON.parse(String(answer)) as Answer);
        },
      );
    });
  }

  talk(): Talk {
    return new Talk(this.#client.makeBidiStreamRequest("/test.Echo/Talk", raw, raw));
  }

  close(): void {
    this.#client.close();
  }
}

/** An open stream. `ended` is set once, to the status of its end. */
export class Talk {
  readonly #stream: grpc.ClientDuplexStream<Buffer, Buffer>;
  echoes = 0;
  ended: grpc.StatusObject | undefined;

  constructor(stream: grpc.ClientDuplexStream<Buffer, Buffer>) {
    this.#stream = stream;
    stream.on("data", () => {
      this.echoes += 1;
    });
    stream.on("error", () => {});
    stream.on("status", (status: grpc.StatusObject) => {
      this.ended = status;
    });
  }

  say(text = "hello"): void {
    this.#stream.write(Buffer.from(text));
  }

  end(): void {
    this.#stream.end();
  }
}
