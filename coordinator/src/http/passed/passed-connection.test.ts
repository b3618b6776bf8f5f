import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import type { HttpRequest, HttpResponse } from "@forage/proto/forage/coordinator/v1/coordinator";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { PassedConnection } from "./passed-connection.ts";

const LIMIT = { timeout: 10_000 };

for (const event of ["drain", "close"])
  test(`completes a buffered write at the event "${event}" of the call`, LIMIT, async () => {
    const { call, connection } = aConnection();
    let isWritten = false;
    const written = new Promise<void>((resolve) =>
      connection.write("beans", () => {
        isWritten = true;
        resolve();
      }),
    );
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isWritten, false);
    call.emit(event);
    await written;
    assert.deepEqual([call.listenerCount("drain"), call.listenerCount("close")], [0, 0]);
  });

test("completes a write immediately if the call accepts it", LIMIT, async () => {
  const { call, connection } = aConnection();
  call.takes = true;
  await new Promise<void>((resolve) => connection.write("beans", () => resolve()));
  assert.deepEqual([call.listenerCount("drain"), call.listenerCount("close")], [0, 0]);
});

function aConnection() {
  const call = new FakeCall();
  return {
    call,
    connection: new PassedConnection(call as unknown as ClientDuplexStream<HttpRequest, HttpResponse>),
  };
}

class FakeCall extends EventEmitter {
  takes = false;

  write(): boolean {
    return this.takes;
  }

  resume(): void {}
}
