import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  LeaseKeepAliveResponse,
  LeaseService,
  WatchResponse,
  WatchService,
} from "@forage/proto/etcdserverpb/rpc";
import { credentials, Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import { until } from "../../../test/support/until.ts";
import { EtcdClient } from "./etcd-client.ts";

const LIMIT = { timeout: 60_000 };
/** Longer than the test, so that only the client's cancellation can end a stream. */
const CALL_LIMIT_MS = 600_000;

test("ends the stream of a watch once the key has changed", LIMIT, async (t) => {
  const { client, streams } = await aMember(t);
  await client.changed("key", 1n, new AbortController().signal);
  await until("the stream has ended", () => streams.ended === 1);
  assert.equal(streams.started, 1);
});

test("ends the stream of a watch when the caller no longer waits", LIMIT, async (t) => {
  const { client, streams } = await aMember(t, { events: [] });
  const caller = new AbortController();
  const changed = client.changed("key", 1n, caller.signal);
  await until("the stream has started", () => streams.started === 1);
  caller.abort();
  await changed;
  await until("the stream has ended", () => streams.ended === 1);
});

test("ends the stream of a renewal after its answer", LIMIT, async (t) => {
  const { client, streams } = await aMember(t);
  assert.equal(await client.keepLeaseAlive(7n), true);
  await until("the stream has ended", () => streams.ended === 1);
});

/** Starts a member of etcd that answers each request with one response and never ends a stream. */
async function aMember(t: TestContext, { events = [{}] }: { readonly events?: readonly object[] } = {}) {
  const streams = { started: 0, ended: 0 };
  const answer =
    <Request, Response>(response: Response) =>
    (stream: ServerDuplexStream<Request, Response>): void => {
      streams.started += 1;
      stream.on("error", () => {});
      stream.once("cancelled", () => {
        streams.ended += 1;
      });
      stream.on("data", () => stream.write(response));
    };
  const server = new Server();
  server.addService(WatchService, { watch: answer(WatchResponse.fromPartial({ events: [...events] })) });
  server.addService(LeaseService, {
    leaseKeepAlive: answer(LeaseKeepAliveResponse.fromPartial({ TTL: 3n })),
    leaseGrant: () => {},
    leaseRevoke: () => {},
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const address = `127.0.0.1:${port}`;
  const client = new EtcdClient({
    endpoints: [{ url: `http://${address}`, address, credentials: credentials.createInsecure() }],
    nowMs: () => Date.now() + CALL_LIMIT_MS,
  });
  t.after(() => {
    client.close();
    server.forceShutdown();
  });
  return { client, streams };
}
