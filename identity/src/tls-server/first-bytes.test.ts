import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { onFirstBytes } from "./first-bytes.ts";

const LIMIT = { timeout: 30_000 };

test("calls back when the first bytes have arrived, and leaves them in the connection", LIMIT, async (t) => {
  const { client, accepted } = await aConnection(t);
  const called = new Promise<Error | undefined>((resolve) => onFirstBytes(accepted, 20_000, resolve));
  client.write("hello");
  assert.equal(await called, undefined);
  assert.equal(accepted.read()?.toString(), "hello");
  assert.deepEqual([accepted.listenerCount("readable"), accepted.listenerCount("close")], [0, 0]);
});

test("calls back with an error when no bytes arrive in time", LIMIT, async (t) => {
  const { accepted } = await aConnection(t);
  const error = await new Promise<{ code: string } | undefined>((resolve) =>
    onFirstBytes(accepted, 20, resolve),
  );
  assert.equal(error?.code, "ERR_TLS_HANDSHAKE_TIMEOUT");
});

test(
  "does not call back when the peer disconnects without sending anything, and closes the connection",
  LIMIT,
  async (t) => {
    const { client, accepted } = await aConnection(t);
    let calls = 0;
    onFirstBytes(accepted, 20_000, () => calls++);
    const closed = once(accepted, "close");
    client.end();
    await closed;
    assert.equal(calls, 0);
  },
);

test("closes a connection whose peer left after its first bytes", LIMIT, async (t) => {
  const { client, accepted } = await aConnection(t);
  client.end("hello");
  await once(client, "finish");
  let calls = 0;
  onFirstBytes(accepted, 20_000, () => calls++);
  await once(accepted, "close");
  assert.equal(calls, 0);
});

async function aConnection(t: TestContext): Promise<{ readonly client: Socket; readonly accepted: Socket }> {
  const server = createServer({ pauseOnConnect: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const accepting = once(server, "connection") as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [accepted] = await accepting;
  t.after(() => {
    client.destroy();
    accepted.destroy();
    server.close();
  });
  return { client, accepted };
}
