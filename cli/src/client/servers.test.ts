import assert from "node:assert/strict";
import { test } from "node:test";
import { type Client, connectivityState, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { CallError } from "./explain.ts";
import { Servers } from "./servers.ts";

const ENDPOINT = {
  ...{ server: "a:1", otherServers: ["b:2"], caFile: "/ca.crt", caPem: "" },
  ...{ token: "t", tokenSource: "/t" },
};
const { signal } = new AbortController();

/** Returns a channel that stays in one state. Waits for another state end at their deadline. */
function aClient(state: connectivityState, deadlines: number[] = []): Client {
  const channel = {
    getConnectivityState: () => state,
    watchConnectivityState: (_: unknown, deadline: Date, done: (error?: Error) => void) => {
      deadlines.push(deadline.getTime());
      setImmediate(done, new Error("deadline"));
    },
  };
  return { getChannel: () => channel, close: () => {} } as unknown as Client;
}

function anError(code: status, details: string): ServiceError {
  return Object.assign(new Error(details), { code, details, metadata: new Metadata() });
}

function serversOf(...clients: readonly Client[]): Servers {
  const servers = clients.map((client, at) => ({ address: ["a:1", "b:2", "c:3"][at] ?? "", client }));
  return new Servers({ servers, endpoint: ENDPOINT, nowMs: () => 1_000_000 });
}

test("tries the next coordinator after 3 s without a connection, or after a share of the time limit", async () => {
  for (const [limitMs, endMs] of [
    [30_000, 1_003_000],
    [1_000, 1_000_500],
  ] as const) {
    const deadlines: number[] = [];
    const silent = aClient(connectivityState.CONNECTING, deadlines);
    const ready = aClient(connectivityState.READY);
    const servers = serversOf(silent, ready);
    const attempt = servers.attempt(signal, limitMs);
    const error = await attempt.connected().then(
      () => assert.fail("it is not connected"),
      (reason: unknown) => reason,
    );
    assert.deepEqual(deadlines, [endMs]);
    await attempt.failed(error);
    assert.equal(await attempt.connected(), ready);
    assert.equal(servers.current.address, "b:2");
    // Later calls start with the coordinator that answered.
    assert.equal(await servers.attempt(signal, limitMs).connected(), ready);
  }
});

test("tries each coordinator once, and names all of them in the error when none can be reached", async () => {
  const servers = serversOf(aClient(connectivityState.CONNECTING), aClient(connectivityState.CONNECTING));
  const attempt = servers.attempt(signal, 1_000);
  await attempt.connected().catch((error: unknown) => attempt.failed(error));
  // The last attempt has the remaining time.
  await attempt.connected();
  const refused = anError(status.UNAVAILABLE, "No connection established. Last error: connect ECONNREFUSED");
  await assert.rejects(attempt.failed(refused), (error) => {
    assert.ok(error instanceof CallError && error.code === "UNREACHABLE" && !error.connected);
    assert.match(error.message, /^none of a:1, b:2 can be reached: no route to a:1: /);
    return true;
  });
});

test("does not send a request again that a coordinator received, and sends the next one to another coordinator", async () => {
  const [first, second] = [aClient(connectivityState.READY), aClient(connectivityState.READY)];
  const servers = serversOf(first, second);
  const attempt = servers.attempt(signal, 1_000);
  assert.equal(await attempt.connected(), first);
  const lost = anError(status.UNAVAILABLE, "no coordinator leads at the moment");
  await assert.rejects(attempt.failed(lost), /no coordinator leads at the moment/);
  assert.equal(await servers.attempt(signal, 1_000).connected(), second);
  const other = servers.attempt(signal, 1_000);
  await assert.rejects(other.failed(anError(status.NOT_FOUND, "there is no pod")), /there is no pod/);
  assert.equal(servers.current.client, second);
});

test("starts a stream that can't be retried at a connected coordinator", async () => {
  const ready = aClient(connectivityState.READY);
  const [silent, failed] = [connectivityState.CONNECTING, connectivityState.TRANSIENT_FAILURE].map((it) =>
    aClient(it),
  );
  assert.ok(silent && failed);
  assert.equal(await serversOf(silent, failed, ready).connected(signal, 1_000), ready);
  assert.equal(await serversOf(silent).connected(signal, 1_000), silent);
});
