import assert from "node:assert/strict";
import { type EventEmitter, once as onceEvent } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import {
  CoordinatorServiceService,
  type HttpRequest,
  type HttpResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import {
  Client,
  credentials,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  status,
} from "@grpc/grpc-js";
import type { Hono } from "hono";
import { until } from "../../../test/support/until.ts";
import { CoordinatorError } from "../../errors.ts";
import { OpenCalls } from "../../rpc/open-calls.ts";
import { requestsOf } from "../../rpc/stream.ts";
import { type Bound, failed } from "../api/call.ts";
import type { OtherHosts } from "../other-hosts.ts";
import { startHttpServer } from "../server.ts";
import { PassCount } from "./pass-counts.ts";
import { passHosts } from "./pass-hosts.ts";
import { passHttp } from "./pass-http.ts";
import { serveHttp } from "./serve-http.ts";

test("passes a request on with its body, cookies and addresses, and returns the response", async (t) => {
  const { url, reached } = await start(t, (app) => {
    app.post("/echo/:name", async (c: Bound) => {
      const { remoteAddress, localPort } = c.env.incoming.socket;
      c.header("set-cookie", "a=1");
      c.header("set-cookie", "b=2", { append: true });
      const { authorization, cookie, host } = c.req.header();
      const body = await c.req.text();
      const answer = { authorization, cookie, host, query: c.req.query("q"), remoteAddress, localPort };
      return c.json({ ...answer, encrypted: "encrypted" in c.env.incoming.socket, length: body.length }, 201);
    });
  });
  const length = 3_000_000;
  const response = await fetch(`${url}/echo/x?q=%2F1`, {
    method: "POST",
    headers: { authorization: "Bearer t", cookie: "c=3" },
    body: "x".repeat(length),
  });
  assert.equal(response.status, 201);
  assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
  const { host, port } = new URL(url);
  assert.deepEqual(await response.json(), {
    ...{ authorization: "Bearer t", cookie: "c=3", host, query: "/1" },
    ...{ remoteAddress: "127.0.0.1", localPort: Number(port), encrypted: false, length },
  });
  assert.deepEqual(reached, [7], "the answer to a write waits for what it wrote");
});

test("passes a stream on without buffering, and ends it at the leader when the client disconnects", async (t) => {
  const ended = Promise.withResolvers<void>();
  const { url } = await start(t, (app) => {
    app.get("/events", (c) => {
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode("data: 1\n\n")),
        cancel: () => ended.resolve(),
      });
      return c.body(body, 200, { "content-type": "text/event-stream" });
    });
  });
  const gone = new AbortController();
  const response = await fetch(`${url}/events`, { signal: gone.signal });
  const first = await response.body?.getReader().read();
  assert.equal(Buffer.from(first?.value ?? []).toString(), "data: 1\n\n");
  gone.abort();
  await ended.promise;
});

test("ends only the request of a client that disconnects during its request at the leader", async (t) => {
  const read = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const { url } = await start(t, (app) => {
    app.get("/here", (c) => c.text("here"));
    app.post("/slow", async (c) => {
      const reader = c.req.raw.body?.getReader();
      await reader?.read();
      read.resolve();
      await reader?.read().then(
        ({ done }) => ended.resolve(done ? "cut short" : "complete"),
        () => ended.resolve("failed"),
      );
      return c.text("late");
    });
  });
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n0123456789");
  await read.promise;
  socket.resetAndDestroy();
  assert.notEqual(await ended.promise, "complete");
  assert.equal(await (await fetch(`${url}/here`)).text(), "here");
});

test("reports that the leader was lost or is older", async (t) => {
  const { url, leader } = await start(t, () => {});
  assert.equal((await fetch(`${url}/none`)).status, 404, "the leader's answer");
  leader.removeService(CoordinatorServiceService);
  const older = await fetch(`${url}/none`);
  assert.equal(older.status, 503);
  assert.match(await older.text(), /is of an older version/);
  leader.forceShutdown();
  assert.equal((await fetch(`${url}/none`)).status, 503);
});

test("passes the connection on for a pod's host name, and never serves the request itself", async (t) => {
  const seen: unknown[] = [];
  const gone = Promise.withResolvers<void>();
  const { url, leader, count } = await start(t, (app) => app.get("*", (c) => c.text("route")), {
    ...NO_UPGRADE,
    serve: async (request, response, arrival, allowLong) => {
      if (request.url === "/cut") return void response.destroy();
      allowLong();
      let length = 0;
      if (request.url === "/held") response.on("close", gone.resolve).write("begun");
      for await (const chunk of request) length += chunk.length;
      const { host, cookie, origin } = request.headers;
      seen.push({
        arrival,
        host,
        cookie,
        origin,
        url: request.url,
        length,
        encrypted: "encrypted" in request.socket,
      });
      if (request.url !== "/held")
        response.setHeader("set-cookie", ["forage-port=1", "b=2"]).end("of the pod");
    },
  });
  const headers = { host: POD, cookie: "forage-port=s", origin: `http://${POD}` };
  const body = "x".repeat(3_000_000);

  const response = await ask(`${url}/a?b=1`, { method: "POST", headers }, body);

  assert.equal(await textOf(response), "of the pod");
  assert.deepEqual(response.headers["set-cookie"], ["forage-port=1", "b=2"]);
  const arrival = { address: "127.0.0.1", proto: "http" };
  assert.deepEqual(seen, [{ arrival, ...headers, url: "/a?b=1", length: body.length, encrypted: false }]);
  assert.equal(await textOf(await ask(`${url}/a`, {})), "route");

  assert.equal((await ask(`${url}/cut`, { headers })).statusCode, 502);

  const held = await ask(`${url}/held`, { headers });
  assert.equal((await once(held, "data")).toString(), "begun");
  held.destroy();
  await gone.promise;

  leader.forceShutdown();
  const lost = await ask(`${url}/a`, { headers });
  assert.equal(lost.statusCode, 502);
  assert.match(await textOf(lost), /the leader can't be reached/);
  await until("no connection is open", () => count.open === 0);
  assert.deepEqual({ ...count }, { open: 0, passed: 4, refused: 0 });
});

test("passes a WebSocket to a pod's host name on in both directions until one end closes", async (t) => {
  const { url } = await start(t, () => {}, {
    ...NO_UPGRADE,
    upgrade: async (request, client) => {
      client.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\n`,
      );
      client.pipe(client);
    },
  });
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  t.after(() => socket.destroy());
  socket.write(`GET /ws HTTP/1.1\r\nHost: ${POD}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
  assert.match((await once(socket, "data")).toString(), /^HTTP\/1.1 101 [\s\S]*Upgrade: echo\r\n/);
  socket.write("ping");
  assert.equal((await once(socket, "data")).toString(), "ping");
  const ended = once(socket, "end");
  socket.end();
  await ended;
});

const POD = "p-0123456789abcdef0123.localhost";
const PORT = {
  listen: { host: "127.0.0.1", port: 0 },
  metrics: {} as never,
  readiness: () => ({ ready: true, reasons: [] }),
};
const owns = (host: string | undefined): boolean => host === POD;
const NO_UPGRADE: OtherHosts = {
  owns,
  serve: async (_request, response) => void response.destroy(),
  upgrade: async (_request, client) => void client.destroy(),
  close: () => {},
};

function ask(
  url: string,
  options: Parameters<typeof httpRequest>[1],
  body?: string,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(url, { ...options, agent: false }, resolve);
    asked.on("error", reject);
    asked.end(body);
  });
}

/** Returns the data of the emitter's next event with this name. */
async function once(emitter: EventEmitter, name: string): Promise<Buffer> {
  const [value] = await onceEvent(emitter, name);
  return value;
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response) text += chunk;
  return text;
}

/** Starts a leader with these routes, and a coordinator that passes all requests on to it. */
async function start(t: TestContext, routes: (app: Hono<never>) => void, otherHosts?: OtherHosts) {
  const own = await startHttpServer({ ...PORT, otherHosts, routes: (app) => routes(app as never) });
  const leader = new Server();
  const calls = new OpenCalls(new AbortController().signal);
  const http = async (call: ServerDuplexStream<HttpRequest, HttpResponse>): Promise<void> => {
    const { signal, abort } = calls.open();
    call.on("cancelled", abort);
    call.on("error", abort);
    const options = { fetch: own.fetch, accept: { http: own.accept }, revision: () => 7 };
    for await (const part of serveHttp(requestsOf(call, signal), { signal }, options)) call.write(part);
    call.end();
  };
  leader.addService(CoordinatorServiceService, {
    report: () => {},
    http: (call: ServerDuplexStream<HttpRequest, HttpResponse>) =>
      void http(call).catch(() => call.emit("error", { code: status.UNKNOWN })),
  });
  const port = await new Promise<number>((resolve, reject) =>
    leader.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const reached: number[] = [];
  const options = {
    client: async () => client,
    reached: async (revision: number) => {
      if (revision > 0) reached.push(revision);
    },
  };
  const count = new PassCount();
  const server = await startHttpServer({
    ...PORT,
    otherHosts: passHosts({ ...options, owns, count }),
    routes: (app) => {
      app.use("*", (c) =>
        passHttp(c, options).catch((error: unknown) => {
          assert.ok(error instanceof CoordinatorError);
          return failed(c, error);
        }),
      );
    },
  });
  t.after(async () => {
    client.close();
    leader.forceShutdown();
    await Promise.all([server.close(), own.close()]);
  });
  return { url: `http://127.0.0.1:${server.address.port}`, leader, reached, count };
}
