import { type ClientHttp2Session, connect, constants } from "node:http2";
import { isIP } from "node:net";
import { failure, failureOf, type ProbeAnswer, success } from "./probe-answer.ts";
import { type TimeLimit, within } from "./time-limit.ts";

export interface GrpcCheck {
  readonly port: number;
  readonly service: string;
}

const PATH = "/grpc.health.v1.Health/Check";
// A response has one byte of flags, four bytes of length and a few bytes of protobuf.
const ANSWER_BYTES_MAX = 1024;
const SERVING = 1;
const STATUS_NAMES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const OK = "0";
const CODE_NAMES: Readonly<Record<string, string>> = {
  "5": `NOT_FOUND, the server doesn't have the service`,
  "12": "UNIMPLEMENTED, the server has no grpc.health.v1.Health",
};

/**
 * Calls grpc.health.v1.Health/Check without TLS; SERVING passes. It uses HTTP/2 directly, because the two messages have
 * one field each, and a client of the gRPC library would take twice the processor time for a connection that serves one
 * call.
 */
export function askGrpcHealth(
  address: string,
  { port, service }: GrpcCheck,
  limit: TimeLimit,
): Promise<ProbeAnswer> {
  return within(limit, (report) => {
    const host = isIP(address) === 6 ? `[${address}]` : address;
    const session = connect(`http://${host}:${port}`);
    session.on("error", (error) => report(failureOf(error)));
    // Otherwise the probe would wait for a server that closes the connection without an error.
    session.on("close", () => report(failure("the connection was closed without an answer")));
    check(session, service, limit.timeoutMs, report);
    return { release: () => session.destroy() };
  });
}

function check(
  session: ClientHttp2Session,
  service: string,
  timeoutMs: number,
  report: (answer: ProbeAnswer) => void,
): void {
  const stream = session.request({
    [constants.HTTP2_HEADER_METHOD]: "POST",
    [constants.HTTP2_HEADER_PATH]: PATH,
    "content-type": "application/grpc",
    te: "trailers",
    "user-agent": "forage-probe",
    "grpc-timeout": `${timeoutMs}m`,
  });
  let body = Buffer.alloc(0);
  let status: string | undefined;
  let detail = "";
  const note = (headers: Record<string, unknown>) => {
    status ??= asText(headers["grpc-status"]);
    detail ||= asText(headers["grpc-message"]) ?? "";
  };
  stream.on("response", (headers) => {
    const httpStatus = headers[constants.HTTP2_HEADER_STATUS];
    if (Number(httpStatus) !== 200) report(failure(`HTTP ${httpStatus} instead of a gRPC answer`));
    note(headers);
  });
  stream.on("trailers", note);
  stream.on("data", (chunk: Buffer) => {
    if (body.byteLength < ANSWER_BYTES_MAX) body = Buffer.concat([body, chunk]);
  });
  // A failed connection also ends the stream, whose error then has the connection's error as its cause.
  stream.on("error", (error) => report(failureOf(error.cause ?? error)));
  stream.on("end", () => report(answerOf(status, detail, body)));
  stream.end(encodeRequest(service));
}

function answerOf(status: string | undefined, detail: string, body: Buffer): ProbeAnswer {
  if (status !== OK) {
    const name = status === undefined ? "no status" : (CODE_NAMES[status] ?? `status ${status}`);
    return failure(`gRPC ${name}`, decodeText(detail));
  }
  const serving = decodeStatus(body);
  const message = serving === undefined ? "an answer that can't be read" : (STATUS_NAMES[serving] ?? serving);
  return serving === SERVING ? success(`${message}`) : failure(`${message}`);
}

/** Encodes a gRPC frame with `HealthCheckRequest { service = 1 }`. */
function encodeRequest(service: string): Buffer {
  const text = Buffer.from(service);
  const message =
    text.byteLength === 0 ? text : Buffer.concat([Buffer.from([0x0a]), varint(text.byteLength), text]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

/** Decodes `HealthCheckResponse { status = 1 }`. Returns 0 if the field is absent, which is protobuf's default. */
function decodeStatus(frame: Buffer): number | undefined {
  if (frame.byteLength < 5 || frame[0] !== 0) return undefined;
  const message = frame.subarray(5, 5 + frame.readUInt32BE(1));
  if (message.byteLength === 0) return 0;
  return message[0] === 0x08 && message.byteLength === 2 ? message[1] : undefined;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Decodes a status message, which gRPC percent-encodes. */
function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
