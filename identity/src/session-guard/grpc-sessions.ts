import type { EventEmitter } from "node:events";
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Server as GrpcServer } from "@grpc/grpc-js";

/** The HTTP/2 server of a grpc-js server. It emits `session` and `stream`. */
export type SessionSource = Pick<EventEmitter, "on" | "listeners" | "removeAllListeners">;

export type StreamListener = (stream: ServerHttp2Stream, ...rest: readonly unknown[]) => void;

/**
 * Returns the HTTP/2 server that grpc-js made for its last connection injector. grpc-js declares it private, but offers
 * no other way to get the connections, or streams whose path no service has.
 */
export function sessionSourceOf(server: GrpcServer): SessionSource {
  const servers: unknown = Reflect.get(server, "http2Servers");
  const last: unknown = servers instanceof Map ? [...servers.keys()].at(-1) : undefined;
  if (isSource(last) && last.listenerCount("stream") > 0) return last;
  throw new TypeError("grpc-js no longer keeps its HTTP/2 servers as keys of `http2Servers`");
}

/** Runs a check before all listeners of new streams. A stream for which it returns false reaches none of them. */
export function checkStreams(source: SessionSource, mayStart: (stream: ServerHttp2Stream) => boolean): void {
  const listeners = source.listeners("stream") as StreamListener[];
  source.removeAllListeners("stream");
  source.on("stream", (stream: ServerHttp2Stream, ...rest: readonly unknown[]) => {
    if (mayStart(stream)) for (const listener of listeners) listener(stream, ...rest);
  });
}

export function onSession(source: SessionSource, opened: (session: ServerHttp2Session) => void): void {
  source.on("session", opened);
}

function isSource(value: unknown): value is SessionSource & Pick<EventEmitter, "listenerCount"> {
  return typeof value === "object" && value !== null && "listenerCount" in value && "on" in value;
}
