import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { test } from "node:test";
import { ConnectionPlaces } from "./connection-places.ts";

const LIMITS = { maxConnections: 10, maxIdle: 2, maxIdlePerAddress: 2 };

test("a connection is idle before, between and after its requests", () => {
  const places = new ConnectionPlaces(LIMITS);
  const socket = new FakeSocket(1);
  places.add(asSocket(socket));
  assert.equal(places.idle, 1);
  for (let request = 0; request < 2; request++) {
    const response = begin(places, socket);
    assert.equal(places.idle, 0);
    response.emit("close");
    assert.equal(places.idle, 1);
  }
  socket.emit("close");
  assert.deepEqual([places.idle, places.open], [0, 0]);
});

test("a connection that waits for its next request makes room for newer ones", () => {
  const places = new ConnectionPlaces(LIMITS);
  const sockets = [1, 2, 3].map((port) => new FakeSocket(port));
  const [first, second, third] = sockets as [FakeSocket, FakeSocket, FakeSocket];
  places.add(asSocket(first));
  begin(places, first).emit("close");
  places.add(asSocket(second));
  places.add(asSocket(third));
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [true, false, false],
  );
});

test("a port that is used again belongs to the newer connection", () => {
  const places = new ConnectionPlaces(LIMITS);
  const [older, newer] = [new FakeSocket(1), new FakeSocket(1)];
  places.add(asSocket(older));
  places.add(asSocket(newer));
  older.emit("close");
  begin(places, newer);
  assert.equal(places.idle, 0);
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

/** A request whose header is complete; its response. */
function begin(places: ConnectionPlaces, socket: FakeSocket): EventEmitter {
  const response = new EventEmitter();
  places.use({ socket } as unknown as IncomingMessage, response as unknown as ServerResponse);
  return response;
}
