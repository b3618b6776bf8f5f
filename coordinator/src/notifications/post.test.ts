import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { signatureOf } from "./message.ts";
import { post } from "./post.ts";

const LIMIT = { timeout: 60_000 };
const never = new AbortController().signal;
const MESSAGE = { id: "ops-9", body: '{"events":[]}' };
const KEY = Buffer.from("0123456789abcdef");

test("posts the body with its id and signature", LIMIT, async (t) => {
  let headers: IncomingHttpHeaders = {};
  let body = "";
  const { url, to } = await aReceiver(t, (request, response) => {
    headers = request.headers;
    request.setEncoding("utf8");
    request.on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => response.writeHead(204).end());
  });
  assert.deepEqual(await post(MESSAGE, to, never), { type: "delivered" });
  assert.equal(body, MESSAGE.body);
  assert.equal(headers["forage-delivery"], "ops-9");
  assert.equal(headers["forage-signature"], signatureOf(MESSAGE.body, KEY, to.clock.nowMs()));
  assert.equal(headers["content-type"], "application/json");
  assert.match(url, /^http:/);
});

for (const [status, type] of [
  [200, "delivered"],
  [302, "refused"],
  [404, "refused"],
  [429, "failed"],
  [503, "failed"],
] as const)
  test(`returns ${type} for an answer with ${status}`, LIMIT, async (t) => {
    const { to } = await aReceiver(t, (_, response) => {
      response.writeHead(status, { location: "/elsewhere" }).end("x".repeat(100_000));
    });
    assert.equal((await post(MESSAGE, to, never)).type, type);
  });

test("fails after some time without an answer", LIMIT, async (t) => {
  const reached = Promise.withResolvers<void>();
  const { to } = await aReceiver(t, () => reached.resolve());
  const result = post(MESSAGE, to, never);
  await reached.promise;
  to.clock.advance(10_000);
  assert.deepEqual(await result, { type: "failed", reason: "no answer within 10 s" });
});

test("reports why a notification can't be sent", LIMIT, async (t) => {
  const { to } = await aReceiver(t, (_, response) => response.end());
  const unusable = { ...to, readKey: () => Promise.reject(new Error("the key /key can't be read")) };
  assert.deepEqual(await post(MESSAGE, unusable, never), {
    type: "failed",
    reason: "the key /key can't be read",
  });
  const gone = await post(MESSAGE, { ...to, url: "http://127.0.0.1:1/" }, never);
  assert.ok(gone.type === "failed" && gone.reason !== "fetch failed", JSON.stringify(gone));
});

async function aReceiver(t: TestContext, listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const clock = new VirtualClock({ startMs: 1_700_000_000_000 });
  return { url, to: { url, clock, readKey: async () => KEY } };
}
