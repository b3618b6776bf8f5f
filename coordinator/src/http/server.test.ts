import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { type Readiness, startHttpServer } from "./server.ts";

const metrics = {
  render: async () => "m 1\n",
  contentType: "text/plain; version=0.0.4",
  observeCall: () => {},
  observeCut: () => {},
  add: () => {},
};

test("answers an unknown path with a status and an explanation", async (t) => {
  const readiness = { ready: false, reasons: ["store: the disk is full"] };
  const get = await serve(t, () => readiness);
  const response = await get("/readyz");
  assert.equal(response.status, 503);
  assert.deepEqual(await response.json(), readiness);
  assert.equal((await get("/healthz")).status, 200, "it lives all the same");
});

test("serves metrics with the content type of their format", async (t) => {
  const get = await serve(t, () => ({ ready: true, reasons: [] }));
  const response = await get("/metrics");
  assert.equal(response.headers.get("content-type"), metrics.contentType);
  assert.equal(await response.text(), "m 1\n");
});

test("reports a port that is in use", async (t) => {
  const server = await startHttpServer({ listen: { host: "127.0.0.1", port: 0 }, metrics, readiness: ready });
  t.after(() => server.close());
  await assert.rejects(startHttpServer({ listen: server.address, metrics, readiness: ready }), {
    code: "EADDRINUSE",
  });
});

test("ends a request whose body does not arrive within 10 seconds", { timeout: 60_000 }, async (t) => {
  const clock = new VirtualClock();
  const server = await startHttpServer({
    listen: { host: "127.0.0.1", port: 0 },
    ...{ metrics, readiness: ready, schedule: clock.schedule },
    routes: (app) =>
      app.post("/bytes", async (c) => c.text(`${(await c.req.text().catch(() => "")).length} bytes\n`)),
  });
  t.after(() => server.close());
  const begin = async (): Promise<Socket> => {
    const before = clock.pending;
    const socket = connect(server.address.port, "127.0.0.1");
    t.after(() => socket.destroy());
    socket.write("POST /bytes HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\nconnection: close\r\n\r\nhello");
    while (clock.pending === before) await new Promise((resolve) => setImmediate(resolve));
    return socket;
  };
  const inTime = await begin();
  clock.advance(9_999);
  inTime.write("there");
  assert.match(await text(inTime), /^HTTP\/1\.1 200 .*10 bytes/s);
  assert.equal(clock.pending, 0);
  const late = await begin();
  clock.advance(10_000);
  assert.match(await text(late), /^HTTP\/1\.1 408 .*the request did not arrive within 10 s\n$/s);
  assert.equal(clock.pending, 0);
});

// Otherwise closing would wait a minute until the server times out the request.
test("closes without waiting for idle connections or the rest of a request", {
  timeout: 20_000,
}, async (t) => {
  const server = await startHttpServer({ listen: { host: "127.0.0.1", port: 0 }, metrics, readiness: ready });
  await (await fetch(`http://127.0.0.1:${server.address.port}/healthz`)).text();
  const half = connect(server.address.port, "127.0.0.1").on("error", () => {});
  t.after(() => half.destroy());
  await once(half, "connect");
  half.write("GET /healthz HTTP/1.1\r\nhost: a\r\n");
  // Once the server has answered a later connection, it has accepted this one.
  await (await fetch(`http://127.0.0.1:${server.address.port}/healthz`)).text();
  const startMs = performance.now();
  await server.close();
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs < 2_000, `closing took ${tookMs} ms`);
});

test("closes the oldest incomplete requests when new connections arrive", { timeout: 180_000 }, async (t) => {
  const limits = { maxConnections: 20, maxIdle: 6, maxIdlePerAddress: 4 };
  const listen = { host: "127.0.0.1", port: 0 };
  const server = await startHttpServer({ listen, metrics, readiness: ready, limits });
  t.after(() => server.close());
  const { port } = server.address;
  const half = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      t.after(() => socket.destroy());
      await once(socket, "connect");
      socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\n");
      return socket;
    }),
  );
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`);
  assert.equal(answer.status, 200);
  const closed = (): number => half.filter(({ readyState }) => readyState === "closed").length;
  for (const socket of half) socket.resume();
  while (closed() < 26) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(closed() <= 27);
});

test("closes an idle connection in favour of newer ones, but not one with a request in progress", {
  timeout: 60_000,
}, async (t) => {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const limits = { maxIdle: 2, maxIdlePerAddress: 2 };
  const server = await startHttpServer({
    listen: { host: "127.0.0.1", port: 0 },
    metrics,
    readiness: ready,
    limits,
    routes: (app) =>
      app.get("/slow", async (c) => {
        await released;
        return c.text("late\n");
      }),
  });
  t.after(() => server.close());
  const { port } = server.address;
  const slow = fetch(`http://127.0.0.1:${port}/slow`);
  for (let i = 0; i < 5; i++)
    await (await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: "close" } })).text();
  const half = Array.from({ length: 5 }, () =>
    connect(port, "127.0.0.1")
      .on("error", () => {})
      .resume(),
  );
  t.after(() => half.forEach((socket) => void socket.destroy()));
  while (half.filter(({ readyState }) => readyState === "closed").length < 3)
    await new Promise((resolve) => setImmediate(resolve));
  release();
  assert.equal(await (await slow).text(), "late\n");
});

function ready(): Readiness {
  return { ready: true, reasons: [] };
}

async function serve(
  t: TestContext,
  readiness: () => Readiness,
): Promise<(path: string) => Promise<Response>> {
  const server = await startHttpServer({ listen: { host: "127.0.0.1", port: 0 }, metrics, readiness });
  t.after(() => server.close());
  return (path) => fetch(`http://127.0.0.1:${server.address.port}${path}`);
}
