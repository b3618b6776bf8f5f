import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { sessionSourceOf } from "./grpc-sessions.ts";
import { Offenders, SessionGuard } from "./session-guard.ts";

test("the stream that makes the guard close its connection reaches no listener, and its error has no effect", () => {
  const { open, reached } = guarded();
  const streams = open(new Session(), 3);
  const [first, second, third] = streams;
  assert.deepEqual(reached, [first, second]);
  assert.ok(third?.session.destroyed);
  third.emit("error", new Error("reset by the peer"));
});

test("streams of a closed connection reach no listener, and their errors have no effect", () => {
  const { open, reached } = guarded();
  const session = new Session();
  session.destroy();
  for (const stream of open(session, 2)) stream.emit("error", new Error("reset by the peer"));
  assert.deepEqual(reached, []);
});

/** Returns a guard that allows a connection two streams, and the streams that passed it. */
function guarded() {
  const server = new Server();
  server.createConnectionInjector(ServerCredentials.createInsecure());
  const source = sessionSourceOf(server);
  const reached: unknown[] = [];
  source.removeAllListeners("stream");
  source.on("stream", (stream) => reached.push(stream));
  new SessionGuard(server, { offenders: new Offenders(), monotonicMs: () => 0, maxUnprovenStreams: 2 });
  const emit = (event: "session" | "stream", value: EventEmitter): void => {
    for (const listener of source.listeners(event)) Reflect.apply(listener, source, [value]);
  };
  const open = (session: Session, count: number): Stream[] => {
    emit("session", session);
    return Array.from({ length: count }, () => {
      const stream = new Stream(session);
      emit("stream", stream);
      return stream;
    });
  };
  return { open, reached };
}

class Session extends EventEmitter {
  readonly socket = { remoteAddress: "192.0.2.1", remotePort: 1, bytesRead: 0, bytesWritten: 0 };
  destroyed = false;

  goaway(): void {}

  destroy(): void {
    this.destroyed = true;
  }
}

class Stream extends EventEmitter {
  readonly session: Session;

  constructor(session: Session) {
    super();
    this.session = session;
  }

  push(): boolean {
    return true;
  }
}
