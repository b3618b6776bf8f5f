import { type ClientHttp2Session, connect } from "node:http2";
import { GetDestination } from "@forage/proto/destination";
import { answerLines, sendLine } from "./lines.ts";
import type { FromClient, ToClient } from "./messages.ts";

/**
 * A stream on plain HTTP/2. Without a gRPC library, the client uses as little as possible of the machine that it shares
 * with the server.
 */
interface Stream {
  messages: number;
  atNs: bigint;
}

const FRAME_HEADER_BYTES = 5;
const STREAMS: Stream[] = [];
let startedNs = 0n;
let complete = 0;
let expected = 1;

answerLines((message: ToClient) => {
  if (message.type === "open") void open(message);
  expected = message.type === "await" ? message.messages : 1;
  complete = STREAMS.filter((stream) => stream.messages >= expected).length;
  report();
});

async function open({ port, streams: count, connections, path }: ToClient & { type: "open" }): Promise<void> {
  startedNs = process.hrtime.bigint();
  const request = GetDestination.encode({ scheme: "", path, contextToken: "" }).finish();
  const body = Buffer.concat([Buffer.alloc(FRAME_HEADER_BYTES), request]);
  body.writeUInt32BE(request.length, 1);
  for (let index = 0; index < count; index++) STREAMS.push({ messages: 0, atNs: 0n });
  for (let connection = 0; connection < connections; connection++) {
    const session = connect(`http://127.0.0.1:${port}`);
    session.on("error", (error) => send({ type: "ended", status: String(error) }));
    for (let index = connection; index < count; index += connections)
      start(session, body, STREAMS[index] as Stream);
    // Lets the process read answers between connections.
    if (connection % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

function start(session: ClientHttp2Session, body: Buffer, stream: Stream): void {
  const call = session.request({
    ":method": "POST",
    ":path": "/io.linkerd.proxy.destination.Destination/Get",
    "content-type": "application/grpc",
    te: "trailers",
  });
  call.end(body);
  let pending: Buffer = Buffer.alloc(0);
  call.on("data", (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    while (pending.length >= FRAME_HEADER_BYTES) {
      const end = FRAME_HEADER_BYTES + pending.readUInt32BE(1);
      if (pending.length < end) break;
      pending = pending.subarray(end);
      countMessage(stream);
    }
  });
  call.on("trailers", (trailers) => send({ type: "ended", status: String(trailers["grpc-status"]) }));
  call.on("error", (error) => send({ type: "ended", status: String(error) }));
}

function countMessage(stream: Stream): void {
  stream.messages++;
  stream.atNs = process.hrtime.bigint();
  if (stream.messages !== expected) return;
  complete++;
  report();
}

function report(): void {
  if (STREAMS.length === 0 || complete < STREAMS.length) return;
  complete = -STREAMS.length;
  send({ type: "arrived", startedNs: String(startedNs), atNs: STREAMS.map(({ atNs }) => String(atNs)) });
}

function send(message: FromClient): void {
  sendLine(message);
}
