import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import type { ServeRequest, ServeResponse, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { Browser } from "./support/dashboard-browser.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };

async function setUp(t: TestContext) {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await watchToEnd(world, rolloutId);
  const browser = new Browser(world.coordinator.http.port);
  const token = await world.token("editor", ["shop"]);
  await browser.login(token);
  const pod = [...agent.assignments.values()][0]?.name ?? "";
  return { world, agent, browser, pod, token };
}

/** Opens the port in the browser, and a WebSocket to the pod, which echoes. */
async function aWebSocket({ agent, browser, pod }: Awaited<ReturnType<typeof setUp>>): Promise<Duplex> {
  const opened = await browser.post("ports", { namespace: "shop", pod, port: 8080 });
  const { host, pathname, search } = new URL(((await opened.json()) as { readonly url: string }).url);
  const { port } = new URL(browser.base);
  const ask = (path: string, headers: Readonly<Record<string, string>>) =>
    request({ host: "127.0.0.1", port, path, headers: { host, ...headers }, agent: false }).end();
  const [entered] = (await once(ask(`${pathname}${search}`, {}), "response")) as [IncomingMessage];
  const cookie = entered.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
  const asking = ask("/", { cookie, connection: "Upgrade", upgrade: "websocket" });
  const { stream } = await serveNext(agent);
  const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  stream.write({ frame: { $case: "stdout", value: Buffer.from(head) } });
  const [, socket] = (await once(asking, "upgrade")) as [IncomingMessage, Duplex];
  return socket.on("error", () => {}).resume();
}

async function serveNext(agent: HollowAgent) {
  await until("the agent is asked", () => agent.sessions.length > 0);
  const session = agent.sessions.shift() as SessionRequest;
  const stream: ClientDuplexStream<ServeRequest, ServeResponse> = agent.client.serve();
  stream.on("error", () => {});
  stream.write({ frame: { $case: "sessionId", value: session.sessionId } });
  return { session, stream };
}

test("streams a log as text, with the reason why it ends", LIMIT, async (t) => {
  const { agent, browser, pod } = await setUp(t);
  const reading = browser.get(`api/logs?namespace=shop&pod=${pod}&follow=true&previous=true&tail=20`);
  const { session, stream } = await serveNext(agent);
  assert.partialDeepStrictEqual(session.kind, {
    $case: "logs",
    value: { follow: true, previous: true, tailLines: 20 },
  });
  stream.write({ frame: { $case: "stdout", value: Buffer.from("one\n") } });
  stream.write({ frame: { $case: "end", value: { exitCode: 0, error: "the log was removed" } } });
  assert.equal(await (await reading).text(), "one\n\n[the log was removed]\n");
});

test(
  "accepts input for a terminal only from its own session, and returns its exit code",
  LIMIT,
  async (t) => {
    const { world, agent, browser, pod } = await setUp(t);
    const target = { namespace: "shop", pod, container: "" };
    assert.equal((await browser.post("terminals", { ...target, columns: 0, rows: 24 })).status, 400);
    const opening = browser.post("terminals", { ...target, columns: 80, rows: 24 });
    const { session, stream } = await serveNext(agent);
    assert.partialDeepStrictEqual(session.kind, {
      $case: "exec",
      value: { tty: true, stdin: true, size: { columns: 80, rows: 24 } },
    });
    const received: ServeResponse["frame"][] = [];
    stream.on("data", ({ frame }: ServeResponse) => received.push(frame));
    stream.write({ frame: { $case: "stdout", value: Buffer.from("$ ") } });
    const response = await opening;
    const path = `terminals/${response.headers.get("x-terminal")}`;
    const other = new Browser(world.coordinator.http.port);
    await other.login(await world.token("admin"));
    assert.equal((await other.post(path, { data: "eA==" })).status, 404);
    assert.equal((await browser.post(path, { data: Buffer.from("ls\n").toString("base64") })).status, 200);
    assert.equal((await browser.post(path, { columns: 100, rows: 30 })).status, 200);
    await until("the agent has both", () => received.length >= 2);
    assert.deepEqual(
      received.slice(0, 2).map((frame) => (frame?.$case === "stdin" ? `${frame.value}` : frame?.value)),
      ["ls\n", { columns: 100, rows: 30 }],
    );
    stream.write({ frame: { $case: "end", value: { exitCode: 5, error: "" } } });
    assert.equal(await response.text(), '{"data":"JCA="}\n{"exit":5}\n');
    assert.equal((await browser.post(path, { data: "eA==" })).status, 404);
  },
);

test("ends streams and port WebSockets of a revoked token without a further request", LIMIT, async (t) => {
  const world = await setUp(t);
  const socket = await aWebSocket(world);
  const live = await world.browser.get("api/live");
  const other = new Browser(world.world.coordinator.http.port);
  await other.login(await world.world.token("viewer"));
  const goesOn = await other.get("api/live");
  const ended = Promise.all([once(socket, "close"), live.text()]);
  await world.world.operator().revokeApiToken({ id: world.token.split("_")[1] ?? "" });
  await ended;
  assert.equal((await other.get("api/me")).status, 200);
  const read = await goesOn.body?.getReader().read();
  assert.equal(read?.done, false, "the session of another token goes on");
});

test("lets a viewer read logs but open no terminal, and ends a terminal at a log-out", LIMIT, async (t) => {
  const { world, agent, browser, pod } = await setUp(t);
  const target = { namespace: "shop", pod, container: "", columns: 80, rows: 24 };
  const viewer = new Browser(world.coordinator.http.port);
  await viewer.login(await world.token("viewer", ["shop"]));
  assert.equal((await viewer.post("terminals", target)).status, 403);
  assert.equal((await viewer.get(`api/logs?namespace=bank&pod=${pod}`)).status, 403);
  const opening = browser.post("terminals", target);
  const { stream } = await serveNext(agent);
  stream.write({ frame: { $case: "stdout", value: Buffer.from("$ ") } });
  const response = await opening;
  await browser.post("logout", {});
  await response.text();
});
