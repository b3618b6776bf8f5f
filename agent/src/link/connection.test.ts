import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { type AgentServiceClient, Hello, type Welcome } from "@forage/proto/forage/agent/v1/agent";
import { connectivityState } from "@grpc/grpc-js";
import { Connection, type OpenOptions } from "./connection.ts";

test("closing a connection closes its channel", async () => {
  const client = new FakeClient();
  const opened = open(client);
  client.call.push({ message: { $case: "welcome", value: { clusterId: "c" } as Welcome } });
  const connection = await opened;
  assert.equal(client.isClosed, false);

  connection.close();

  assert.deepEqual([client.isClosed, client.call.isCancelled], [true, true]);
});

test("a call that the coordinator accepts but never answers times out after 15 seconds", async () => {
  const client = new FakeClient();
  const clock = new VirtualClock();
  const refused = assert.rejects(open(client, { clock }), { code: "UNAVAILABLE" });

  await clock.run(14_000);
  assert.equal(client.call.isCancelled, false);
  await clock.run(1_000);

  assert.equal(client.call.isCancelled, true);
  await refused;
  assert.equal(client.isClosed, true);
});

test("abandons a coordinator that is not reached in time, but waits for a slow answer", async () => {
  const clock = new VirtualClock();
  const away = new FakeClient();
  const refused = assert.rejects(
    open(away, { clock, connectLimitMs: 3_000 }),
    /no connection within 3000 ms/,
  );
  const slow = new FakeClient();
  slow.state = connectivityState.READY;
  const opened = open(slow, { clock, connectLimitMs: 3_000 });
  await clock.run(3_000);
  await refused;
  slow.call.push({ message: { $case: "welcome", value: { clusterId: "c" } as Welcome } });
  await opened;
  assert.equal(clock.pending, 0);
});

test("an answer in time leaves no timer", async () => {
  const client = new FakeClient();
  const clock = new VirtualClock();
  client.call.push({ message: { $case: "welcome", value: { clusterId: "c" } as Welcome } });
  await open(client, { clock });
  assert.equal(clock.pending, 0);
});

test("stopping before the call aborts the attempt at once", async () => {
  const client = new FakeClient();
  await assert.rejects(open(client, { signal: AbortSignal.abort() }), { code: "UNAVAILABLE" });
  assert.equal(client.isClosed, true);
});

test("a coordinator that answers no heartbeats is left", async () => {
  const { client, clock, connection, ended } = await serving();
  assert.equal(connection.requestsAnswer(), true);
  await clock.run(9_000);
  assert.equal(client.call.isCancelled, false);
  await clock.run(1_000);
  await assert.rejects(ended, { code: "UNAVAILABLE", message: "the coordinator answers no heartbeats" });
  connection.close();
  assert.equal(clock.pending, 0);
});

test("an answer to a heartbeat keeps the connection", async () => {
  const { client, clock, connection, ended } = await serving();
  for (let round = 0; round < 3; round++) {
    assert.equal(connection.requestsAnswer(), true);
    await clock.run(2_000);
    client.call.push({ message: { $case: "heartbeatAnswer", value: { nextMs: 0 } } });
    await clock.run(8_000);
  }
  assert.equal(client.call.isCancelled, false);
  connection.close();
  await ended;
});

test("slow processing of a message is no silence of the coordinator", async () => {
  const { client, clock, connection, ended, release } = await processing();
  connection.requestsAnswer();
  await clock.run(60_000);
  assert.equal(client.call.isCancelled, false);
  release();
  connection.close();
  await ended;
});

test("a heartbeat that is sent after the end of the connection leaves no timer", async () => {
  const { clock, connection, ended, release } = await processing();
  connection.close();
  release();
  await ended;
  assert.equal(connection.requestsAnswer(), false);
  assert.equal(clock.pending, 0);
});

test("a coordinator of an earlier version is requested no answers", async () => {
  const { connection, ended } = await serving(async () => {}, { answersHeartbeats: false });
  assert.equal(connection.requestsAnswer(), false);
  connection.close();
  await ended;
});

/** Opens a connection and reads its messages. `ended` rejects if the connection breaks. */
async function serving(process: () => Promise<void> = async () => {}, welcome: Partial<Welcome> = {}) {
  const client = new FakeClient();
  const clock = new VirtualClock();
  const value = { clusterId: "c", answersHeartbeats: true, heartbeatIntervalMs: 2_500, ...welcome };
  client.call.push({ message: { $case: "welcome", value: value as Welcome } });
  const connection = await open(client, { clock });
  const ended = (async () => {
    for await (const _ of connection.messages()) await process();
  })();
  ended.catch(() => undefined);
  await clock.run(0);
  return { client, clock, connection, ended };
}

/** Opens a connection that is processing a message until `release` is called. */
async function processing() {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  const served = await serving(() => promise);
  served.client.call.push({ message: { $case: "certificateRenewal", value: {} } });
  await served.clock.run(0);
  return { ...served, release };
}

function open(
  client: FakeClient,
  { clock = new VirtualClock(), signal = new AbortController().signal, ...more }: Partial<OpenOptions> = {},
): Promise<Connection> {
  const options = { clock, signal, ...more };
  return Connection.open(client as unknown as AgentServiceClient, Hello.fromPartial({}), options);
}

/** A call that yields pushed messages and fails when it is cancelled. */
class FakeCall extends PassThrough {
  isCancelled = false;

  constructor() {
    super({ objectMode: true });
  }

  override write(): boolean {
    return true;
  }

  cancel(): void {
    this.isCancelled = true;
    this.destroy(new Error("cancelled"));
  }
}

class FakeClient {
  readonly call = new FakeCall();
  isClosed = false;
  state = connectivityState.CONNECTING;

  getChannel() {
    return { getConnectivityState: () => this.state };
  }

  connect(): FakeCall {
    return this.call;
  }

  close(): void {
    this.isClosed = true;
  }
}
