import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import {
  CoordinatorServiceService,
  type HttpRequest,
  type HttpResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import { Client, credentials, Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import { Hono } from "hono";
import { CoordinatorError } from "../../errors.ts";
import { OpenCalls } from "../../rpc/open-calls.ts";
import { requestsOf } from "../../rpc/stream.ts";
import { type Bound, failed } from "../api/call.ts";
import { startHttpServer } from "../server.ts";
import { passHttp } from "./pass-http.ts";
import { serveHttp } from "./serve-http.ts";

test("a request passes with its body, cookies and connection, and the response comes back", async (t) => {
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

test("a stream passes as it comes, and ends at the leader when the client leaves", async (t) => {
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

test("a client that leaves amid its request ends it at the leader, and nothing else", async (t) => {
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

test("a leader that is lost or older is an error that says so", async (t) => {
  const { url, leader } = await start(t, () => {});
  assert.equal((await fetch(`${url}/none`)).status, 404, "the leader's answer");
  leader.removeService(CoordinatorServiceService);
  const older = await fetch(`${url}/none`);
  assert.equal(older.status, 503);
  assert.match(await older.text(), /is of an older version/);
  leader.forceShutdown();
  assert.equal((await fetch(`${url}/none`)).status, 503);
});

/** A leader with these routes, and a coordinator that passes all requests on to it. */
async function start(t: TestContext, routes: (app: Hono<never>) => void) {
  const app = new Hono();
  routes(app as never);
  const leader = new Server();
  const calls = new OpenCalls(new AbortController().signal);
  const http = async (call: ServerDuplexStream<HttpRequest, HttpResponse>): Promise<void> => {
    const { signal, abort } = calls.open();
    call.on("cancelled", abort);
    call.on("error", abort);
    const options = { fetch: (request: Request, env: object) => app.fetch(request, env), revision: () => 7 };
    for await (const part of serveHttp(requestsOf(call, signal), { signal }, options)) call.write(part);
    call.end();
  };
  leader.addService(CoordinatorServiceService, {
    report: () => {},
    http: (call: ServerDuplexStream<HttpRequest, HttpResponse>) => void http(call).catch(() => {}),
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
  const server = await startHttpServer({
    listen: { host: "127.0.0.1", port: 0 },
    metrics: {} as never,
    readiness: () => ({ ready: true, reasons: [] }),
    routes: (own) => {
      own.use("*", (c) =>
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
    await server.close();
  });
  return { url: `http://127.0.0.1:${server.address.port}`, leader, reached };
}
