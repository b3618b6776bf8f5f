import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, request } from "node:http";
import { request as tlsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { CertificateAuthority } from "@forage/identity/ca";
import { aPod } from "../../../test/support/entries.ts";
import { tunnelToPort } from "../../../test/support/tunnels.ts";
import { until } from "../../../test/support/until.ts";
import { CoordinatorError } from "../../errors.ts";
import { TunnelStream } from "../../forwarding/tunnel-stream.ts";
import { type HttpTls, startHttpServer } from "../../http/server.ts";
import type { Caller } from "../../rpc/caller.ts";
import { MAX_OPENED_PORTS_OF_SESSION } from "./opened-ports.ts";
import { PodPorts } from "./pod-ports.ts";

const LIMIT = { timeout: 60_000 };
const EDITOR = caller("editor");

test(
  "forwards requests of the browser that opened the port to the pod, without cookies of Forage",
  LIMIT,
  async (t) => {
    const { open, get, enter, seen } = await aServer(t);
    const address = open();
    const cookie = await enter(address);
    const answer = await get(address.host, "/page?x=1", {
      cookie: `forage-session-7601=secret; theme=dark; ${cookie}; __Host-forage-session-1=other`,
    });
    assert.deepEqual([answer.status, answer.body], [200, "GET /page?x=1"]);
    assert.equal(seen.at(-1)?.cookie, "theme=dark");
    assert.deepEqual(answer.cookies, ["app=1; Path=/"], "the pod can't set cookies of the dashboard");
    assert.equal((await get(address.host, "/")).status, 403, "without the cookie");
    assert.equal((await get("p-00000000000000000000.localhost", "/", { cookie })).status, 404);
    assert.equal((await get("127.0.0.1", "/healthz")).body, "ok\n", "other names lead to the coordinator");
    assert.equal(
      (await get(address.host, "/healthz", { cookie })).body,
      "GET /healthz",
      "and these never do",
    );
  },
);

test("accepts a ticket once and within a minute", LIMIT, async (t) => {
  const { open, get, enter, clock } = await aServer(t);
  const first = open();
  await enter(first);
  assert.equal((await get(first.host, first.path)).status, 403);
  const second = open();
  assert.equal((await get(second.host, first.path)).status, 403, "it is another port's");
  clock.advance(60_000);
  assert.equal((await get(second.host, second.path)).status, 403);
});

test("refuses requests of other hosts' pages with the cookie, and allows links", LIMIT, async (t) => {
  const { open, get, enter } = await aServer(t);
  const address = open();
  const cookie = await enter(address);
  for (const [headers, status] of [
    [{ origin: "http://evil.example" }, 403],
    [{ origin: `http://${address.host}` }, 200],
    [{ "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }, 403],
    [{ "sec-fetch-site": "same-site", "sec-fetch-mode": "websocket" }, 403],
    [{ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, 200],
    [{ "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" }, 200],
  ] as const)
    assert.equal(
      (await get(address.host, "/", { cookie, ...headers })).status,
      status,
      JSON.stringify(headers),
    );
});

test("forwards WebSockets to the pod, and ends them with the session", LIMIT, async (t) => {
  const { open, enter, upgrade, session } = await aServer(t);
  const address = open();
  const cookie = await enter(address);
  const refused = await upgrade(address.host, {});
  assert.equal(refused.status, 403);
  const { status, socket } = await upgrade(address.host, { cookie });
  assert.equal(status, 101);
  assert.ok(socket);
  const echoed = new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
  socket.write("beans");
  assert.equal(await echoed, "beans");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  session.abort();
  await closed;
});

test("accepts the port's cookie even if another pod has set a cookie of the same name", LIMIT, async (t) => {
  const { open, get, enter } = await aServer(t);
  const { host, path } = open();
  const cookie = await enter({ host, path });
  const foreign = `forage-port=${"x".repeat(43)}; forage-port=short; forage-port=`;
  const status = async (cookies: string): Promise<number> =>
    (await get(host, "/", { cookie: cookies })).status;
  assert.equal(await status(`${foreign}; ${cookie}; ${foreign}`), 200);
  assert.equal(await status(foreign), 403);
  assert.equal(await status(`__Host-${cookie}`), 403, "without TLS it has another name");
});

test("accepts over TLS only the cookie that is bound to its host and to TLS", LIMIT, async (t) => {
  const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
  const names = { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"] };
  const { open, get } = await aServer(t, await authority.issueServer(names));
  const { host, path } = open();
  const [cookie = ""] = (await get(host, path)).cookies;
  assert.match(cookie, /^__Host-forage-port=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
  const [own = ""] = cookie.split(";");
  const foreign = own.replace("__Host-", "");
  const status = async (cookies: string): Promise<number> =>
    (await get(host, "/", { cookie: cookies })).status;
  assert.equal(await status(`${foreign}; ${own}`), 200);
  assert.equal(await status(foreign), 403);
});

test("allows an upload of any duration, and ends it after a minute without data", LIMIT, async (t) => {
  const { open, enter, upload, clock, received } = await aServer(t);
  const address = open();
  const cookie = await enter(address);
  const slow = upload(address.host, { cookie });
  for (let sent = 1; sent <= 5; sent++) {
    slow.asking.write("beans");
    await until("the pod has the bytes", () => received() === 5 * sent);
    clock.advance(59_000);
  }
  slow.asking.end();
  assert.deepEqual(await slow.answer, { status: 200, body: "25 bytes" });
  const stalled = upload(address.host, { cookie });
  stalled.asking.write("beans");
  await until("the pod has the bytes", () => received() === 5);
  clock.advance(120_000);
  assert.deepEqual(await stalled.answer, { status: 408, body: "the request did not arrive within 60 s\n" });
  await until("the pod's connection has ended", () => received() === 0);
});

test("closes a request in progress when the session ends", LIMIT, async (t) => {
  const { open, enter, upload, received, session } = await aServer(t);
  const address = open();
  const { asking, answer } = upload(address.host, { cookie: await enter(address) });
  asking.write("beans");
  await until("the pod has the bytes", () => received() === 5);
  session.abort();
  await assert.rejects(answer, { code: "ECONNRESET" });
});

test("ends an upload without the cookie after 10 seconds", LIMIT, async (t) => {
  const { open, upload, clock } = await aServer(t);
  const { asking, answer } = upload(open().host, {});
  asking.write("beans");
  assert.equal((await answer).status, 403);
  const ended = new Promise<void>((resolve) => asking.once("close", () => resolve()));
  clock.advance(10_000);
  await ended;
});

test("closes a port with its session, its permissions and its pod", LIMIT, async (t) => {
  const world = await aServer(t);
  const { open, get, enter } = world;
  const address = open();
  const cookie = await enter(address);
  const status = async (): Promise<number> => (await get(address.host, "/", { cookie })).status;
  assert.equal(await status(), 200);
  world.state.caller = caller("viewer");
  assert.equal(await status(), 403, "port-forward takes an editor");
  world.state.caller = EDITOR;
  world.state.hasPod = false;
  assert.equal(await status(), 404);
  world.state.hasPod = true;
  assert.equal(await status(), 200);
  world.state.caller = undefined;
  assert.equal(await status(), 403);
  world.state.caller = EDITOR;
  assert.equal(await status(), 404, "it was closed with the session");
  assert.throws(() => open(caller("viewer")), { code: "PERMISSION_DENIED" });
});

test("closes the oldest port of a session that opens too many", LIMIT, async (t) => {
  const { open, get, enter } = await aServer(t);
  const first = open();
  const cookie = await enter(first);
  for (let count = 1; count < MAX_OPENED_PORTS_OF_SESSION; count++) open();
  assert.equal((await get(first.host, "/", { cookie })).status, 200);
  open();
  assert.equal((await get(first.host, "/", { cookie })).status, 404);
});

function caller(role: "viewer" | "editor"): Caller {
  return { type: "user", name: "token:a", grants: [{ role, namespaces: "*" }], tokenId: "a" };
}

/**
 * Starts the HTTP port of a coordinator, and a pod that returns the request and echoes over
 * WebSockets.
 */
async function aServer(t: TestContext, tls?: HttpTls) {
  const seen: IncomingMessage["headers"][] = [];
  let bytes = 0;
  const pod = createServer((incoming, response) => {
    seen.push(incoming.headers);
    if (incoming.method === "POST") {
      bytes = 0;
      incoming.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      incoming.once("end", () => response.end(`${bytes} bytes`));
      incoming.once("error", () => {
        bytes = 0;
      });
      return;
    }
    response.setHeader("set-cookie", ["app=1; Path=/", "forage-session-7601=evil; Path=/dashboard"]);
    response.end(`${incoming.method} ${incoming.url}`);
  });
  pod.on("upgrade", (_, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.pipe(socket);
    socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => pod.listen(0, "127.0.0.1", resolve));
  const { port } = pod.address() as AddressInfo;
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const session = new AbortController();
  const state: { caller: Caller | undefined; hasPod: boolean } = { caller: EDITOR, hasPod: true };
  let made = 0;
  const podPorts = new PodPorts({
    ...{ domain: "localhost", clock },
    randomBytes: (count) => Buffer.alloc(count, `${++made} `),
    dial: (_, to) => new TunnelStream(tunnelToPort(to), () => {}),
    sessionOf: () => undefined,
    callerOf: () => state.caller,
    findPod: () => {
      if (!state.hasPod) throw new CoordinatorError("NOT_FOUND", "there is no such pod");
      return aPod();
    },
    beginUse: () => () => {},
  });
  const metrics = { render: async () => "", contentType: "text/plain" } as never;
  const server = await startHttpServer({
    listen: { host: "127.0.0.1", port: 0 },
    schedule: clock.schedule,
    ...(tls && { tls }),
    ...{ metrics, readiness: () => ({ ready: true, reasons: [] }), otherHosts: podPorts },
  });
  t.after(async () => {
    await server.close();
    pod.closeAllConnections();
    pod.close();
  });
  const own = { tokenId: "a", key: "0a", signal: session.signal };
  const open = (by: Caller = EDITOR) => podPorts.open(own, by, { namespace: "shop", pod: "web-1", port });
  const get = (host: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
    ask(server.address.port, path, { ...headers, host }, tls !== undefined);
  const enter = async ({ host, path }: ReturnType<typeof open>): Promise<string> => {
    const { status, cookies } = await get(host, path);
    assert.equal(status, 303);
    assert.match(cookies[0] ?? "", /^forage-port=[^;]+; Path=\/; HttpOnly; SameSite=Lax$/);
    return cookies[0]?.split(";")[0] ?? "";
  };
  const upgrade = (host: string, headers: Readonly<Record<string, string>>) =>
    askUpgrade(server.address.port, { ...headers, host, connection: "Upgrade", upgrade: "websocket" });
  const upload = (host: string, headers: Readonly<Record<string, string>>) =>
    startUpload(server.address.port, { ...headers, host });
  return { open, get, enter, upgrade, upload, seen, clock, session, state, received: () => bytes };
}

async function ask(port: number, path: string, headers: Readonly<Record<string, string>>, isTls: boolean) {
  const options = { host: "127.0.0.1", port, path, headers, agent: false } as const;
  const asking = isTls ? tlsRequest({ ...options, rejectUnauthorized: false }) : request(options);
  asking.end();
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    asking.once("response", resolve).once("error", reject),
  );
  let body = "";
  for await (const chunk of response) body += String(chunk);
  return { status: response.statusCode ?? 0, body, cookies: response.headers["set-cookie"] ?? [] };
}

/** Begins a request whose body is sent later. */
function startUpload(port: number, headers: Readonly<Record<string, string>>) {
  const asking = request({ host: "127.0.0.1", port, path: "/", method: "POST", headers, agent: false });
  asking.flushHeaders();
  const answer = new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
    asking.on("error", reject);
    asking.once("response", async (response) => {
      let body = "";
      for await (const chunk of response) body += String(chunk);
      resolve({ status: response.statusCode ?? 0, body });
    });
  });
  return { asking, answer };
}

async function askUpgrade(port: number, headers: Readonly<Record<string, string>>) {
  const asking = request({ host: "127.0.0.1", port, path: "/ws", headers, agent: false }).end();
  return new Promise<{ status: number; socket?: import("node:stream").Duplex }>((resolve, reject) => {
    asking.once("upgrade", (response, socket) => resolve({ status: response.statusCode ?? 0, socket }));
    asking.once("response", (response) => {
      response.resume();
      resolve({ status: response.statusCode ?? 0 });
    });
    asking.once("error", reject);
  });
}
