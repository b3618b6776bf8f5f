import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "node:test";
import { TcpRelay } from "./tcp-relay.ts";
import { waitFor } from "./wait-for.ts";

test("forwards bytes, forwards none while it is cut, and ends old connections when it is mended", async (t) => {
  const echo = createServer((socket) => socket.on("error", () => {}).pipe(socket)).listen(0, "127.0.0.1");
  await once(echo, "listening");
  const relay = await TcpRelay.start(() => ({
    host: "127.0.0.1",
    port: (echo.address() as AddressInfo).port,
  }));
  t.after(() => relay.close());
  t.after(() => echo.close());
  const open = () => {
    const socket = connect(Number(relay.address.split(":")[1]), "127.0.0.1");
    const received: string[] = [];
    socket.on("data", (bytes) => received.push(String(bytes))).on("error", () => {});
    const closed = once(socket, "close");
    return { socket, received, closed };
  };
  const first = open();
  first.socket.write("a");
  await has(first.received, "a");
  relay.cut();
  first.socket.write("b");
  const second = open();
  await once(second.socket, "connect");
  second.socket.write("c");
  relay.mend();
  await Promise.all([first.closed, second.closed].map((closed) => closed.catch(() => {})));
  assert.deepEqual([first.received, second.received], [["a"], []]);
  const third = open();
  third.socket.write("d");
  await has(third.received, "d");
  third.socket.destroy();
});

async function has(received: readonly string[], text: string): Promise<void> {
  await waitFor(() => received.join("") === text, { what: `${text} arrives`, limitMs: 20_000 });
}
