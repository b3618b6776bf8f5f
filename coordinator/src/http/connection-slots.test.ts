import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { test } from "node:test";
import { ConnectionSlots } from "./connection-slots.ts";

const LIMITS = { maxConnections: 10, maxIdle: 2, maxIdlePerAddress: 2 };

test("treats a connection as idle before, between and after its requests", () => {
  const slots = new ConnectionSlots(LIMITS);
  const socket = new FakeSocket(1);
  slots.add(asSocket(socket));
  assert.equal(slots.idle, 1);
  for (let request = 0; request < 2; request++) {
    const response = begin(slots, socket);
    assert.equal(slots.idle, 0);
    response.emit("close");
    assert.equal(slots.idle, 1);
  }
  socket.emit("close");
  assert.deepEqual([slots.idle, slots.open], [0, 0]);
});

test("closes a connection that waits for its next request in favour of newer ones", () => {
  const slots = new ConnectionSlots(LIMITS);
  const sockets = [1, 2, 3].map((port) => new FakeSocket(port));
  const [first, second, third] = sockets as [FakeSocket, FakeSocket, FakeSocket];
  slots.add(asSocket(first));
  begin(slots, first).emit("close");
  slots.add(asSocket(second));
  slots.add(asSocket(third));
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [true, false, false],
  );
});

test("attributes a reused port to the newer connection", () => {
  const slots = new ConnectionSlots(LIMITS);
  const [older, newer] = [new FakeSocket(1), new FakeSocket(1)];
  slots.add(asSocket(older));
  slots.add(asSocket(newer));
  older.emit("close");
  begin(slots, newer);
  assert.equal(slots.idle, 0);
});

class FakeSocket extends EventEmitter {
  readonly remoteAddress = "192.0.2.1";
  readonly remotePort: number;
  destroyed = false;

  constructor(remotePort: number) {
    super();
    this.remotePort = remotePort;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

function asSocket(socket: FakeSocket): Socket {
  return socket as unknown as Socket;
}

/** Begins a request with a complete header. Returns its response. */
function begin(slots: ConnectionSlots, socket: FakeSocket): EventEmitter {
  const response = new EventEmitter();
  slots.use({ socket } as unknown as IncomingMessage, response as unknown as ServerResponse);
  return response;
}
