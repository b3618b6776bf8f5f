import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import {
  CoordinatorServiceService,
  type HttpRequest,
  type HttpResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import { Client, credentials, Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import { until } from "../../../test/support/until.ts";
import { CoordinatorError } from "../../errors.ts";
import { OpenCalls } from "../../rpc/open-calls.ts";
import { requestsOf } from "../../rpc/stream.ts";
import { PassConnections } from "./pass-connections.ts";
import { PassCount } from "./pass-counts.ts";
import type { PassHttpOptions } from "./pass-http.ts";
import type { ServedConnection } from "./serve-connection.ts";
import { serveHttp } from "./serve-http.ts";

const LIMIT = { timeout: 60_000 };

test(
  "passes a connection on with its addresses, counts its bytes, and closes both ends",
  LIMIT,
  async (t) => {
    const { accepted, client } = await aLeader(t);
    const { passes, count, visit } = await aPort(t, client);
    const visitor = await visit();
    visitor.write("beans");
    await until("the leader has the connection", () => accepted.length === 1);
    const [connection] = accepted;
    assert.ok(connection);
    assert.equal(connection.remoteAddress, "127.0.0.1");
    assert.equal(connection.remotePort, visitor.localPort);
    assert.equal(String((await once(visitor, "data"))[0]), "beans");
    await until("both ways are counted", () => connection.bytesRead === 5 && connection.bytesWritten === 5);
    const closed = once(visitor, "close");
    connection.end();
    await closed;

    const second = await visit();
    second.write("x");
    await once(second, "data");
    second.destroy();
    await until("the leader has the end", () => accepted[1]?.destroyed === true);

    const third = await visit();
    third.write("x");
    await once(third, "data");
    const ended = once(third, "close");
    passes.end();
    await ended;
    await until("the leader has the end", () => accepted[2]?.destroyed === true);
    assert.deepEqual({ ...count }, { open: 0, passed: 3, refused: 0 });
  },
);

test("reports the reason to a visitor whose connection can't be passed on", LIMIT, async (t) => {
  const none = async (): Promise<never> => {
    throw new CoordinatorError("UNAVAILABLE", "no coordinator leads at the moment");
  };
  const { count, visit } = await aPort(t, none);
  const visitor = await visit();
  visitor.write("anything");
  assert.equal(String((await once(visitor, "data"))[0]), "refused: no coordinator leads at the moment");
  await once(visitor, "close");
  await until("no connection is open", () => count.open === 0);
  assert.deepEqual({ ...count }, { open: 0, passed: 0, refused: 1 });
});

test("reports the reason to a visitor beyond the limit", LIMIT, async (t) => {
  const { client } = await aLeader(t);
  const { count, visit } = await aPort(t, client, 1);
  const first = await visit();
  first.write("x");
  await once(first, "data");
  assert.match(String((await once(await visit(), "data"))[0]), /^refused: too many connections/);
  assert.deepEqual({ ...count }, { open: 1, passed: 1, refused: 1 });
});

test("closes the connection if the leader does not have this port", LIMIT, async (t) => {
  const { client } = await aLeader(t, { hasIngress: false });
  const { visit } = await aPort(t, client);
  await once(await visit(), "close");
});

/** Opens a port whose connections are passed on. */
async function aPort(t: TestContext, client: PassHttpOptions["client"], maxOpen = 10) {
  const count = new PassCount();
  const passes = new PassConnections({
    ...{ client, maxOpen, count, port: "ingress" },
    refusal: (reason) => `refused: ${reason}`,
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => passes.pass(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const visit = async (): Promise<Socket> => {
    const visitor = connect((server.address() as AddressInfo).port, "127.0.0.1");
    t.after(() => visitor.destroy());
    visitor.on("error", () => {});
    await once(visitor, "connect");
    return visitor;
  };
  return { passes, count, visit };
}

/** Starts a leader whose ingress echoes everything. */
async function aLeader(t: TestContext, { hasIngress = true } = {}) {
  const accepted: ServedConnection[] = [];
  const ingress = (connection: ServedConnection): void => {
    connection.on("error", () => {});
    accepted.push(connection);
    connection.pipe(connection);
  };
  const leader = new Server();
  const calls = new OpenCalls(new AbortController().signal);
  const options = {
    fetch: () => new Response(),
    accept: { http: () => {}, ...(hasIngress && { ingress }) },
    revision: () => 1,
  };
  const http = async (call: ServerDuplexStream<HttpRequest, HttpResponse>): Promise<void> => {
    const { signal, abort } = calls.open();
    call.on("cancelled", abort);
    call.on("error", abort);
    for await (const part of serveHttp(requestsOf(call, signal), { signal }, options)) call.write(part);
    call.end();
  };
  leader.addService(CoordinatorServiceService, {
    report: () => {},
    http: (call: ServerDuplexStream<HttpRequest, HttpResponse>) =>
      void http(call).catch((error) => call.emit("error", error)),
  });
  const port = await new Promise<number>((resolve, reject) =>
    leader.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const channel = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(() => {
    channel.close();
    leader.forceShutdown();
  });
  return { accepted, client: async () => channel };
}
