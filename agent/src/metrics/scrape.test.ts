import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcp } from "node:net";
import { type TestContext, test } from "node:test";
import { SCRAPE_BYTES_MAX, scrape } from "./scrape.ts";

const LIMIT = { timeout: 180_000 };
const never = new AbortController().signal;

test("returns the pod's response, whatever its content type", LIMIT, async (t) => {
  let asked = "";
  const port = await serve(t, (request, response) => {
    asked = `${request.method} ${request.url} ${request.headers["accept-encoding"]}`;
    response.end("queue 7\n");
  });
  assert.equal(await scrape({ ...from(port), path: "/stats?a=b" }, never), "queue 7\n");
  assert.equal(asked, "GET /stats?a=b identity");
});

const refused: readonly (readonly [what: string, RequestListener, RegExp])[] = [
  ["another status", (_, response) => response.writeHead(503).end("no"), /HTTP 503/],
  [
    "a redirect",
    (_, response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
    /HTTP 302/,
  ],
  [
    "a compressed response",
    (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end("x"),
    /compressed \(gzip\)/,
  ],
  [
    "a response that is too long",
    (_, response) => response.end("x".repeat(SCRAPE_BYTES_MAX + 1)),
    /more than 1048576 bytes/,
  ],
  [
    "an endless response",
    (_, response) => {
      const more = () => response.write("x".repeat(65_536), (error) => error || more());
      more();
    },
    /more than 1048576 bytes/,
  ],
  [
    "a truncated response",
    (_, response) => {
      response.writeHead(200, { "content-length": 100 }).write("x");
      setImmediate(() => response.destroy());
    },
    /aborted|hang up|reset|terminated/i,
  ],
];

for (const [what, listener, why] of refused) {
  test(`rejects ${what}`, LIMIT, async (t) => {
    const port = await serve(t, listener);
    await assert.rejects(scrape(from(port), never), why);
  });
}

test("times out on a server that doesn't respond", LIMIT, async (t) => {
  const port = await serve(t, () => undefined);
  const late = new AbortController();
  const answer = scrape(from(port), late.signal);
  late.abort();
  await assert.rejects(answer, /in time/);
});

test("stops reading an endless response", LIMIT, async (t) => {
  const begun = Promise.withResolvers<void>();
  const port = await serve(t, (_, response) => {
    response.writeHead(200).write("a 1\n");
    begun.resolve();
  });
  const late = new AbortController();
  const answer = scrape(from(port), late.signal);
  await begun.promise;
  late.abort();
  await assert.rejects(answer, /in time/);
});

test("fails without a listener, and with a server that doesn't speak HTTP", LIMIT, async () => {
  const server = createTcp((socket) => socket.resume().end("SSH-2.0-x\r\n"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await assert.rejects(scrape(from(port), never), /Parse Error/);
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(scrape(from(port), never), /ECONNREFUSED/);
});

function from(port: number) {
  return { address: "127.0.0.1", port, path: "/metrics", scheme: "http" } as const;
}

async function serve(t: TestContext, listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
