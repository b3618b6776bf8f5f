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
