import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { connect, isIPv6 } from "node:net";

/** Sends a query to a server. Resolves to undefined if no answer to this query arrives in time. */
export type QueryServer = (
  server: string,
  question: Buffer,
  protocol: "udp" | "tcp",
  timeoutMs: number,
) => Promise<Buffer | undefined>;

const DNS_PORT = 53;
const HEADER_BYTES = 12;

/**
 * Returns a function that queries over the network. Each query has its own id and port, so that answers can't be
 * guessed.
 */
export function queryOver(port = DNS_PORT): QueryServer {
  return (server, question, protocol, timeoutMs) => {
    const sent = Buffer.from(question);
    sent.writeUInt16BE(randomInt(0x1_0000), 0);
    const isAnswer = (bytes: Buffer): boolean => answers(bytes, sent);
    return protocol === "udp"
      ? overUdp(server, port, sent, timeoutMs, isAnswer)
      : overTcp(server, port, sent, timeoutMs, isAnswer);
  };
}

function overUdp(
  server: string,
  port: number,
  sent: Buffer,
  timeoutMs: number,
  isAnswer: (bytes: Buffer) => boolean,
): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(server) ? "udp6" : "udp4");
    let over = false;
    const done = (answer?: Buffer): void => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      socket.close();
      resolve(answer);
    };
    const timer = setTimeout(done, timeoutMs);
    socket.on("error", () => done());
    socket.on("message", (bytes) => {
      if (isAnswer(bytes)) done(bytes);
    });
    // A connected socket, so that the kernel drops datagrams of others and reports a closed port.
    socket.connect(port, server, () => {
      if (!over) socket.send(sent, (error) => error && done());
    });
  });
}

function overTcp(
  server: string,
  port: number,
  sent: Buffer,
  timeoutMs: number,
  isAnswer: (bytes: Buffer) => boolean,
): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: server, port });
    let received = Buffer.alloc(0);
    const done = (answer?: Buffer): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(done, timeoutMs);
    socket.on("error", () => done());
    socket.on("close", () => done());
    socket.on("connect", () => socket.write(framed(sent)));
    socket.on("data", (bytes) => {
      received = Buffer.concat([received, bytes]);
      if (received.length < 2) return;
      const length = received.readUInt16BE(0);
      if (received.length < length + 2) return;
      const answer = received.subarray(2, length + 2);
      done(isAnswer(answer) ? answer : undefined);
    });
  });
}

/** Returns the message for DNS over TCP, with its length in front. */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length, 0);
  return Buffer.concat([length, message]);
}

/** Reports whether an answer has the id and the question of the query, ignoring the case of letters. */
function answers(bytes: Buffer, sent: Buffer): boolean {
  if (bytes.length < HEADER_BYTES || bytes.readUInt16BE(0) !== sent.readUInt16BE(0)) return false;
  if ((bytes.readUInt16BE(2) & 0x8000) === 0) return false;
  // A server that could not parse the query omits the question.
  if (bytes.readUInt16BE(4) === 0) return (bytes.readUInt16BE(2) & 15) !== 0;
  const end = questionEnd(sent);
  const same = (buffer: Buffer): string => buffer.toString("latin1", HEADER_BYTES, end).toLowerCase();
  return same(bytes) === same(sent);
}

function questionEnd(message: Buffer): number {
  let at = HEADER_BYTES;
  while (at < message.length && message.readUInt8(at) !== 0) at += message.readUInt8(at) + 1;
  return at + 5;
}
