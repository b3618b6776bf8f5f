import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { until } from "../../../test/support/until.ts";
import { type ServedIngress, startIngressServer } from "./ingress-server.ts";
import { INGRESS_SCHEMA } from "./ingress-settings.ts";

const INGRESS: ServedIngress = {
  serve: async (_request, response) => void response.end("served here"),
  upgrade: async () => {},
  recheck: () => {},
  close: () => {},
};
const REQUEST = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

test("passes connections on until the ingress serves the same port", {
  timeout: 60_000,
}, async (t) => {
  const { server, ask } = await aServer(t);
  assert.equal(await ask(), "passed on");
  server.serve(INGRESS);
  assert.equal(await ask(), "served here");
});

test("closes a connection that another coordinator passed on after an hour without traffic", async (t) => {
  const { server, clock, visit } = await aServer(t);
  server.serve(INGRESS);
  const { far, near } = visit();
  near.write(REQUEST);
  await until("the request is answered", () => String(near.read() ?? "").includes("served here"));
  far.bytesWritten = 100;
  clock.advance(61_000);
  clock.advance(3_500_000);
  assert.equal(far.destroyed, false);
  clock.advance(200_000);
  assert.equal(far.destroyed, true);
});

test("limits passed-on connections like connections to its own port", async (t) => {
  const { server, visit } = await aServer(t);
  assert.equal(visit().far.destroyed, true, "this coordinator serves no ingress yet");
  server.serve(INGRESS);
  const open = [visit(), visit()];
  assert.equal(visit().far.destroyed, true);
  for (const { far } of open) assert.equal(far.destroyed, false);
  open[0]?.far.destroy();
  await until("there is a place again", () => !visit().far.destroyed);
});

async function aServer(t: TestContext) {
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const server = await startIngressServer({
    settings: INGRESS_SCHEMA.parse({ listen: "127.0.0.1:0", connections: 2 }),
    log: { info: () => {}, warn: () => {} },
    clock,
    pass: (connection) =>
      connection.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\npassed on"),
  });
  t.after(() => server.close());
  const ask = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${server.address.port}/`, { headers: { connection: "close" } })).text();
  const visit = () => {
    const [near, other] = duplexPair();
    const far = Object.assign(other, { bytesRead: 0, bytesWritten: 0 });
    near.on("error", () => {});
    far.on("error", () => {});
    server.accept(far);
    return { near, far };
  };
  return { server, clock, ask, visit };
}
