import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { makeLoginCode } from "@forage/identity/workspace-login";
import { Registry } from "prom-client";
import { tunnelToPort } from "../../../test/support/tunnels.ts";
import { CoordinatorError } from "../../errors.ts";
import { TunnelStream } from "../../forwarding/tunnel-stream.ts";
import { createMemoryStore } from "../../store/index.ts";
import { AccessStats } from "../access/access-stats.ts";
import { ActivityMeter } from "../access/activity-meter.ts";
import { UsedCodes } from "../access/used-codes.ts";
import type { ReachableWorkspace } from "../access/workspace-directory.ts";
import { Ingress } from "./ingress.ts";
import { startIngressServer } from "./ingress-server.ts";
import { INGRESS_SCHEMA } from "./ingress-settings.ts";

const LIMIT = { timeout: 180_000 };
const TOKEN = "abcdefghijklmnopqrstuvwxyz012345";
const COOKIE = `_example_org_ws_i1_owner_=${TOKEN}`;
const HOST = "w1.ws.example.org";

test(
  "serves a workspace to its owner by header and by cookie, and does not forward the token",
  LIMIT,
  async (t) => {
    const { visit, seen } = await setUp(t);
    const byHeader = await visit({ headers: { "X-Gitpod-Owner-Token": TOKEN, "X-Other": "1" } });
    assert.deepEqual([byHeader.status, byHeader.body], [200, "hello from 23000"]);
    const byCookie = await visit({ headers: { Cookie: `a=1; ${COOKIE}; b=2; _example_org_ws_i9_owner_=x` } });
    assert.equal(byCookie.status, 200);
    assert.equal(seen[0]?.headers["x-other"], "1");
    assert.equal(seen[1]?.headers.cookie, "a=1; b=2");
    for (const { headers } of seen) {
      assert.doesNotMatch(JSON.stringify(headers), new RegExp(TOKEN));
      assert.equal(headers["x-gitpod-owner-token"], undefined);
      assert.equal(headers.host, HOST);
      assert.equal(headers["x-forwarded-proto"], "http");
      assert.equal(headers["x-forwarded-host"], HOST);
    }
  },
);

test(
  "answers 401 without a token, 403 for a wrong one, 400 for an undecodable one, 404 for an unknown workspace",
  LIMIT,
  async (t) => {
    const { visit, seen } = await setUp(t);
    const status = async (headers: Record<string, string>, host = HOST) =>
      (await visit({ headers, host })).status;
    assert.equal(await status({}), 401);
    assert.equal(await status({ Cookie: "_example_org_ws_i2_owner_=x" }), 401);
    assert.equal(await status({ "x-gitpod-owner-token": "wrong" }), 403);
    assert.equal(await status({ Cookie: "_example_org_ws_i1_owner_=wrong" }), 403);
    assert.equal(await status({ "x-gitpod-owner-token": "%zz" }), 400);
    assert.equal(await status({ Cookie: "_example_org_ws_i1_owner_=%zz" }), 400);
    assert.equal(await status({ "x-gitpod-owner-token": TOKEN }, "w2.ws.example.org"), 404);
    assert.equal(await status({ "x-gitpod-owner-token": TOKEN }, "example.org"), 404);
    assert.deepEqual(seen, []);
  },
);

test(
  "serves public ports and admitted workspaces to everyone, and requires the token for other ports",
  LIMIT,
  async (t) => {
    const { visit, workspace, change } = await setUp(t);
    const port = (number: number, headers = {}) => visit({ headers, host: `${number}-${HOST}` });
    assert.equal((await port(3_000)).status, 401);
    assert.equal((await port(3_000, { "x-gitpod-owner-token": TOKEN })).body, "hello from 3000");
    change({ ...workspace, publicPorts: new Set([3_000]) });
    assert.equal((await port(3_000)).body, "hello from 3000");
    assert.equal((await visit({})).status, 401);
    change({ ...workspace, admitsEveryone: true });
    assert.equal((await visit({})).status, 200);
  },
);

test("exchanges a login link for a cookie only once", LIMIT, async (t) => {
  const { visit, clock } = await setUp(t);
  const code = makeLoginCode({ ownerToken: TOKEN, host: HOST, nowMs: clock.nowMs() });
  const open = (text: string, host = HOST) => visit({ path: `/.forage/login?code=${text}`, host });
  const first = await open(code);
  assert.equal(first.status, 303);
  const [cookie = ""] = first.headers["set-cookie"] ?? [];
  assert.equal(cookie, `${COOKIE}; Path=/; HttpOnly; SameSite=Lax`);
  assert.equal((await visit({ headers: { Cookie: cookie.split(";")[0] ?? "" } })).status, 200);
  assert.equal((await open(code)).status, 403);
  assert.equal((await open("nonsense")).status, 400);
  assert.equal((await open(code, `3000-${HOST}`)).status, 403);
  const old = makeLoginCode({ ownerToken: TOKEN, host: HOST, nowMs: clock.nowMs() });
  clock.advance(120_000);
  assert.equal((await open(old)).status, 403);
});

test("closes only connections without any traffic for an hour", LIMIT, async (t) => {
  const { upgrade, visit, clock } = await setUp(t, 2);
  const open = async () => {
    const socket = await upgrade({ Cookie: COOKIE });
    await socket.until(/101 Switching/);
    return socket;
  };
  const [idle, busy] = [await open(), await open()];
  assert.equal((await visit({ headers: { Cookie: COOKIE } })).status, 503);
  clock.advance(50 * 60_000);
  busy.write("still here");
  await busy.until(/still here/);
  clock.advance(20 * 60_000);
  await idle.closed;
  busy.write("and now");
  await busy.until(/and now/);
  // The slot is free only after the ingress has ended the visit; the time limit of the test bounds
  // this loop.
  while ((await visit({ headers: { Cookie: COOKIE } })).status !== 200);
  clock.advance(62 * 60_000);
  await busy.closed;
});

test("refuses a cookie sent by a page of another workspace", LIMIT, async (t) => {
  const { visit } = await setUp(t);
  const from = async (origin: string) =>
    (await visit({ headers: { Cookie: COOKIE, Origin: origin } })).status;
  assert.equal(await from("https://other.ws.example.org"), 403);
  assert.equal(await from(`https://3000-${HOST}`), 200);
  assert.equal(await from("https://example.com"), 200);
});

test("streams a body of any size in both directions", LIMIT, async (t) => {
  const { visit } = await setUp(t);
  const body = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdef");
  const headers = { "x-gitpod-owner-token": TOKEN };
  const answer = await visit({ path: "/echo", method: "POST", headers, body });
  assert.equal(answer.body.length, body.length);
  assert.equal(digestOf(answer.body), digestOf(body));
});

test("opens a WebSocket after the workspace has accepted it, and counts it as activity", LIMIT, async (t) => {
  const { upgrade, activity, clock, reports } = await setUp(t);
  const socket = await upgrade({ "x-gitpod-owner-token": TOKEN });
  assert.match(await socket.until(/\r\n\r\n/), /^HTTP\/1\.1 101 /);
  socket.write("ping");
  assert.match(await socket.until(/ping/), /ping/);
  assert.equal(activity.openOf("i1"), 1);
  clock.advance(30_000);
  assert.equal(reports.length, 2);
  socket.destroy();
  while (activity.openOf("i1") > 0) await new Promise((resolve) => setImmediate(resolve));
});

test("refuses a WebSocket without a token, and forwards the workspace's own refusal", LIMIT, async (t) => {
  const { upgrade } = await setUp(t);
  assert.match(await (await upgrade({})).until(/owner token/), /^HTTP\/1\.1 401 /);
  const refused = await upgrade({ "x-gitpod-owner-token": TOKEN }, "/refuse");
  assert.match(await refused.until(/no websocket here/), /^HTTP\/1\.1 418 /);
});

test(
  "answers 502 for a port without a listener, and 503 for a node that is away or a pod without a node",
  LIMIT,
  async (t) => {
    const { visit, workspace, change, fault } = await setUp(t);
    const headers = { "x-gitpod-owner-token": TOKEN };
    const closed = await visit({ headers, host: `4000-${HOST}` });
    assert.equal(closed.status, 502);
    assert.match(closed.body, /port 4000 of the pod can't be reached/);
    fault.error = new CoordinatorError("UNAVAILABLE", "node a is unreachable");
    const away = await visit({ headers });
    assert.deepEqual([away.status, /node a is unreachable/.test(away.body)], [503, true]);
    change({ ...workspace, pod: undefined });
    assert.equal((await visit({ headers })).status, 503);
  },
);

test(
  "closes an open WebSocket when its port becomes private or its token becomes invalid",
  LIMIT,
  async (t) => {
    const { upgrade, workspace, change } = await setUp(t);
    const isPublic = { ...workspace, publicPorts: new Set([3_000]) };
    change(isPublic);
    const byPublicPort = await upgrade({}, "/ws", `3000-${HOST}`);
    const byToken = await upgrade({ "x-gitpod-owner-token": TOKEN });
    for (const { until } of [byPublicPort, byToken]) await until(/\r\n\r\n/);
    change(workspace);
    await byPublicPort.closed;
    byToken.write("ping");
    await byToken.until(/ping/);
    change({ ...workspace, ownerToken: TOKEN.toUpperCase() });
    await byToken.closed;
  },
);

test("remembers used login codes across a restart until they expire", LIMIT, async (t) => {
  const { visit, clock, openCodes } = await setUp(t);
  const code = makeLoginCode({ ownerToken: TOKEN, host: HOST, nowMs: clock.nowMs() });
  assert.equal((await visit({ path: `/.forage/login?code=${code}` })).status, 303);
  const [, nonce = ""] = code.split(".");
  const restarted = await openCodes();
  assert.equal(await restarted.use(nonce, clock.nowMs() + 1_000), false);
  clock.advance(600_000);
  await restarted.close();
  assert.equal(await (await openCodes()).use(nonce, clock.nowMs() + 1_000), true);
});

test("counts requests, bytes and refusals", LIMIT, async (t) => {
  const { visit, stats } = await setUp(t);
  const registry = new Registry();
  stats.addMetrics([registry]);
  await visit({ headers: { "x-gitpod-owner-token": TOKEN } });
  await visit({});
  await visit({ path: "/.forage/login" });
  const text = await registry.metrics();
  for (const line of [
    'access_open{door="ingress"} 0',
    'access_total{door="ingress"} 1',
    'access_refused_total{door="ingress",reason="not-authorized"} 1',
    'access_refused_total{door="ingress",reason="login-link"} 1',
  ])
    assert.ok(text.includes(`forage_workspace_${line}\n`), `${line} in\n${text}`);
});

test("refuses open requests of a workspace beyond the limit", LIMIT, async (t) => {
  const { visit, upgrade, activity } = await setUp(t, 1);
  const headers = { "x-gitpod-owner-token": TOKEN };
  const socket = await upgrade(headers);
  await socket.until(/\r\n\r\n/);
  assert.equal((await visit({ headers })).status, 503);
  socket.destroy();
  while (activity.openOf("i1") > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await visit({ headers })).status, 200);
});

function digestOf(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

async function setUp(t: TestContext, connectionsPerWorkspace = 100) {
  const seen: IncomingMessage[] = [];
  const ports = new Map([
    [23_000, await serve(t, 23_000, seen)],
    [3_000, await serve(t, 3_000, seen)],
  ]);
  const workspace: ReachableWorkspace = {
    instanceId: "i1",
    metaId: "w1",
    ownerToken: TOKEN,
    admitsEveryone: false,
    publicPorts: new Set(),
    sshKeys: [],
    pod: { node: "a", uid: "pod-1" },
  };
  const other = { ...workspace, instanceId: "i9", metaId: "other" };
  let current: ReachableWorkspace = workspace;
  const fault: { error?: Error } = {};
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const store = createMemoryStore({ clock });
  const openCodes = () => UsedCodes.open({ store, clock, log: { warn: () => {} } });
  const stats = new AccessStats();
  const codes = await openCodes();
  const reports: string[] = [];
  const activity = new ActivityMeter({ markActive: (id) => void reports.push(id) }, clock);
  const byPrefix = (prefix: string) => (prefix === "w1" ? current : prefix === "other" ? other : undefined);
  const ingress = new Ingress({
    templates: {
      urlTemplate: "https://{{.Prefix}}.ws.{{.Host}}",
      portUrlTemplate: "https://{{.WorkspacePort}}-{{.Prefix}}.ws.{{.Host}}",
      host: "example.org",
      ingressPort: 443,
    },
    directory: { byPrefix, byMetaId: byPrefix, byInstanceId: (id) => (id === "i1" ? current : undefined) },
    ...{ codes, stats },
    dial: (_pod, port) => {
      if (fault.error !== undefined) throw fault.error;
      // A port without an entry has no listener on this machine.
      return new TunnelStream(tunnelToPort(ports.get(port) ?? port), () => {});
    },
    activity,
    clock,
    workspacePort: 23_000,
    connectionsPerWorkspace,
  });
  const settings = INGRESS_SCHEMA.parse({ listen: "127.0.0.1:0" });
  const server = await startIngressServer({
    settings,
    ingress,
    clock,
    log: { info: () => {}, warn: () => {} },
  });
  t.after(async () => {
    await server.close();
    await codes.close();
    await store.close();
    activity.close();
  });
  return {
    seen,
    workspace,
    change: (changed: ReachableWorkspace) => {
      current = changed;
      ingress.recheck("i1");
    },
    ...{ openCodes, stats },
    fault,
    clock,
    reports,
    activity,
    visit: (given: Visit) => visit(server.address.port, given),
    upgrade: (headers: Record<string, string>, path = "/ws", host = HOST) =>
      upgrade(server.address.port, { ...headers, Host: host }, path),
  };
}

interface Visit {
  readonly host?: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
}

async function visit(port: number, { host = HOST, path = "/", method = "GET", headers = {}, body }: Visit) {
  const sent = request({
    host: "127.0.0.1",
    port,
    path,
    method,
    headers: { ...headers, host },
    agent: false,
  });
  sent.end(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    sent.once("response", resolve).once("error", reject),
  );
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  const answer: { status: number | undefined; headers: IncomingHttpHeaders; body: string } = {
    status: response.statusCode,
    headers: response.headers,
    body: Buffer.concat(chunks).toString(),
  };
  return answer;
}

async function upgrade(port: number, headers: Record<string, string>, path: string) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const lines = Object.entries({ ...headers, Connection: "Upgrade", Upgrade: "websocket" });
  socket.write(
    `GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`,
  );
  const until = async (pattern: RegExp): Promise<string> => {
    while (!pattern.test(text)) await new Promise((resolve) => setImmediate(resolve));
    return text;
  };
  return { until, closed, write: (data: string) => socket.write(data), destroy: () => socket.destroy() };
}

/**
 * Serves the application of a workspace: greets, echoes bodies, and echoes on upgraded connections.
 */
async function serve(t: TestContext, name: number, seen: IncomingMessage[]): Promise<number> {
  const server = createServer((incoming: IncomingMessage, outgoing: ServerResponse) => {
    seen.push(incoming);
    if (incoming.url === "/echo") incoming.pipe(outgoing);
    else outgoing.end(`hello from ${name}`);
  });
  server.on("upgrade", (incoming: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => {});
    if (incoming.url === "/refuse")
      return socket.end("HTTP/1.1 418 No\r\nContent-Length: 17\r\n\r\nno websocket here");
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    return socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}
