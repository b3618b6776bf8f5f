import type { ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";

/**
 * Returns the HTTP/2 stream of a call, for an interceptor. grpc-js declares it private, but offers no other way to
 * reset a stream, to count the bytes of an incomplete message, or to identify the connection.
 */
export function http2StreamOf(call: object): ServerHttp2Stream {
  const stream = "stream" in call ? call.stream : undefined;
  if (isHttp2Stream(stream)) return stream;
  throw new TypeError("grpc-js no longer keeps the HTTP/2 stream of a call under the name `stream`");
}

function isHttp2Stream(value: unknown): value is ServerHttp2Stream {
  return value instanceof Duplex && "session" in value && "rstCode" in value;
}
