import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Readiness, startHttpServer } from "./server.ts";

const metrics = {
  render: async () => "m 1\n",
  contentType: "text/plain; version=0.0.4",
  observeCall: () => {},
};

test("what is missing is told by a status and in words", async (t) => {
  const readiness = { ready: false, reasons: ["store: the disk is full"] };
  const get = await serve(t, () => readiness);
  const response = await get("/readyz");
  assert.equal(response.status, 503);
  assert.deepEqual(await response.json(), readiness);
  assert.equal((await get("/healthz")).status, 200, "it lives all the same");
});

test("metrics come as their format says", async (t) => {
  const get = await serve(t, () => ({ ready: true, reasons: [] }));
  const response = await get("/metrics");
  assert.equal(response.headers.get("content-type"), metrics.contentType);
  assert.equal(await response.text(), "m 1\n");
});

test("a port that is taken is an error, not a hang", async (t) => {
  const server = await startHttpServer({ listen: { host: "127.0.0.1", port: 0 }, metrics, readiness: ready });
  t.after(() => server.close());
  await assert.rejects(startHttpServer({ listen: server.address, metrics, readiness: ready }), {
    code: "EADDRINUSE",
  });
});

test("closing doesn't wait for idle connections", async () => {
  const server = await startHttpServer({ listen: { host: "127.0.0.1", port: 0 }, metrics, readiness: ready });
  await (await fetch(`http://127.0.0.1:${server.address.port}/healthz`)).text();
  await server.close();
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
