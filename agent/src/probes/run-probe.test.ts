import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer as createHttpServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { clusterName } from "@forage/identity";
import { CertificateAuthority } from "@forage/identity/ca";
import grpc from "@grpc/grpc-js";
import { systemClock } from "../clock.ts";
import type { ExecInContainer } from "./exec-probe.ts";
import { describeAnswer, type ProbeAnswer } from "./probe-answer.ts";
import type { ProbeHandler } from "./probe-spec.ts";
import { probeOver } from "./run-probe.ts";

const HOST = "127.0.0.1";
const LONG_MS = 60_000;
const SHORT_MS = 50;
const run = probeOver(systemClock);

function ask(handler: ProbeHandler, options: { timeoutMs?: number; exec?: ExecInContainer } = {}) {
  const { timeoutMs = LONG_MS, exec = neverRun } = options;
  return run(handler, { address: HOST, exec }, timeoutMs, new AbortController().signal);
}

const neverRun: ExecInContainer = () => Promise.reject(new Error("not to be run"));

function http(port: number, changes: Partial<ProbeHandler & { type: "http" }> = {}): ProbeHandler {
  return { type: "http", scheme: "HTTP", port, path: "/", headers: [], ...changes };
}

async function listen(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function expect(answer: ProbeAnswer, outcome: ProbeAnswer["outcome"], text: string | RegExp): void {
  assert.equal(answer.outcome, outcome, describeAnswer(answer));
  if (typeof text === "string") assert.equal(describeAnswer(answer), text);
  else assert.match(describeAnswer(answer), text);
}

test("HTTP: 200 to 399 passes, and anything else fails with the response's text", async (t) => {
  const listener: RequestListener = (request, response) => {
    const status = Number(request.url?.slice(1));
    response
      .writeHead(status)
      .end(status < 400 ? "fine" : `{"error":\n\t"no \u001b[31mdatabase"}${"x".repeat(9_000)}`);
  };
  const port = await listen(t, createHttpServer(listener));
  for (const [status, outcome] of [
    [200, "success"],
    [204, "success"],
    [304, "success"],
    [399, "success"],
    [400, "failure"],
    [404, "failure"],
    [503, "failure"],
  ] as const) {
    const answer = await ask(http(port, { path: `/${status}` }));
    assert.equal(answer.outcome, outcome, `${status}`);
    assert.match(answer.message, new RegExp(`^HTTP ${status}`));
  }
  const answer = await ask(http(port, { path: "503" }));
  assert.equal(answer.message, "HTTP 503 Service Unavailable");
  assert.equal(answer.detail, `{"error": "no [31mdatabase"}${"x".repeat(200)}`.slice(0, 200).concat("…"));
});

test("HTTP: sends the given headers, including Host, and an empty value removes a default", async (t) => {
  const seen: { url: string | undefined; headers: IncomingHttpHeaders }[] = [];
  const port = await listen(
    t,
    createHttpServer((request, response) => {
      seen.push({ url: request.url, headers: request.headers });
      response.end();
    }),
  );
  await ask(http(port, { path: "health?deep=1&q=a b" }));
  const headers = [
    { name: "Host", value: "shop.example" },
    { name: "X-Tag", value: "a" },
    { name: "x-tag", value: "b" },
    { name: "User-Agent", value: "mine" },
    { name: "Accept", value: "" },
  ];
  await ask(http(port, { headers }));
  assert.equal(seen[0]?.url, "/health?deep=1&q=a%20b");
  assert.deepEqual(seen[0]?.headers, {
    "user-agent": "forage-probe",
    accept: "*/*",
    connection: "close",
    host: `${HOST}:${port}`,
  });
  assert.deepEqual(seen[1]?.headers, {
    host: "shop.example",
    "x-tag": "a, b",
    "user-agent": "mine",
    connection: "close",
  });
});

test("HTTP: a header that can't be sent fails the probe, not the agent", async (t) => {
  const port = await listen(t, createHttpServer());
  const headers = [{ name: "X-Bad", value: "a\r\nb" }];
  expect(await ask(http(port, { headers })), "failure", /Invalid character in header/);
});

test("HTTP: follows redirects within the host, and passes one to another host without following it", async (t) => {
  const asked: string[] = [];
  const port = await listen(
    t,
    createHttpServer((request, response) => {
      const { url = "" } = request;
      asked.push(url);
      const to: Record<string, string> = {
        "/away": "http://forage.invalid/",
        "/loop": "/loop",
        "/relative": "sick",
        "/absolute": `http://${HOST}:${port}/well`,
        "/odd": "ftp://forage.invalid/",
      };
      if (to[url] === undefined) response.writeHead(url === "/sick" ? 500 : 200).end();
      else response.writeHead(302, { location: to[url] }).end("moved");
    }),
  );
  expect(await ask(http(port, { path: "/away" })), "success", "HTTP 302 Found, redirected to forage.invalid");
  expect(await ask(http(port, { path: "/relative" })), "failure", "HTTP 500 Internal Server Error");
  expect(await ask(http(port, { path: "/absolute" })), "success", "HTTP 200 OK");
  expect(await ask(http(port, { path: "/odd" })), "success", "HTTP 302 Found");
  asked.length = 0;
  expect(await ask(http(port, { path: "/loop" })), "failure", "more than 10 redirects");
  assert.equal(asked.length, 11);
});

test("HTTP: a late response fails the probe, but an endless body does not", async (t) => {
  let cut = 0;
  const port = await listen(
    t,
    createHttpServer((request, response) => {
      if (request.url === "/silent") return;
      response.on("close", () => {
        cut += 1;
      });
      if (request.url === "/slow") return void response.writeHead(200).write("x");
      const flood = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1024)));
      };
      response.on("drain", flood);
      response.writeHead(200);
      flood();
    }),
  );
  expect(
    await ask(http(port, { path: "/silent" }), { timeoutMs: SHORT_MS }),
    "failure",
    "no answer within 50 ms",
  );
  // Long enough for the response's head to arrive, however busy the machine is.
  expect(await ask(http(port, { path: "/slow" }), { timeoutMs: 40 * SHORT_MS }), "success", "HTTP 200 OK");
  const beganMs = performance.now();
  expect(await ask(http(port, { path: "/flood" })), "success", "HTTP 200 OK");
  assert.ok(performance.now() - beganMs < LONG_MS / 2, "it is cut off by its size, not by time");
  await until(() => cut === 2);
});

test("HTTP: reports a server that isn't HTTP, hangs up or isn't there", async (t) => {
  const port = await listen(
    t,
    createServer((socket) => socket.end("220 mail.example ESMTP\r\n")),
  );
  expect(await ask(http(port)), "failure", /^Parse Error/);
  const abrupt = await listen(
    t,
    createServer((socket) => socket.destroy()),
  );
  expect(await ask(http(abrupt)), "failure", /socket hang up|ECONNRESET/);
  const nobody = await unusedPort();
  expect(await ask(http(nobody)), "failure", `connect ECONNREFUSED ${HOST}:${nobody}`);
});

test("HTTPS: accepts any certificate, and sends the Host header's name", async (t) => {
  const authority = await CertificateAuthority.create(clusterName("test"), {
    nowMs: Date.now,
    randomBytes,
  });
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames: ["other.example"], ipAddresses: [] });
  const names: (string | false | null)[] = [];
  const server = createTlsServer({ key: keyPem, cert: chainPem }, (request, response) => {
    names.push((request.socket as TLSSocket & { servername: string | false }).servername);
    response.end();
  });
  const port = await listen(t, server);
  expect(await ask(http(port, { scheme: "HTTPS" })), "success", "HTTP 200 OK");
  const headers = [{ name: "Host", value: "shop.example:443" }];
  expect(await ask(http(port, { scheme: "HTTPS", headers })), "success", "HTTP 200 OK");
  assert.deepEqual(names, [false, "shop.example"]);
  expect(await ask(http(port)), "failure", /socket hang up|ECONNRESET|Parse Error/);
});

test("TCP: passes once connected", async (t) => {
  const port = await listen(t, createServer());
  expect(await ask({ type: "tcp", port }), "success", `connected to port ${port}`);
  const nobody = await unusedPort();
  expect(await ask({ type: "tcp", port: nobody }), "failure", `connect ECONNREFUSED ${HOST}:${nobody}`);
});

test("an abort ends the probe at once, and counts neither as success nor as failure", async (t) => {
  const accepted: Socket[] = [];
  const port = await listen(
    t,
    createServer((socket) => accepted.push(socket)),
  );
  const abort = new AbortController();
  const handlers: ProbeHandler[] = [http(port), { type: "grpc", port, service: "" }];
  const answers = handlers.map((it) => run(it, { address: HOST, exec: neverRun }, LONG_MS, abort.signal));
  await until(() => accepted.length === 2);
  abort.abort();
  for (const answer of await Promise.all(answers)) expect(answer, "unknown", "given up");
  expect(
    await run(http(port), { address: HOST, exec: neverRun }, LONG_MS, abort.signal),
    "unknown",
    "given up",
  );
  assert.equal(accepted.length, 2);
});

test("exec: exit code 0 passes, and the output is shown", async () => {
  const command = { type: "exec", command: ["check"] } as const;
  const ends =
    (exitCode: number, output: string): ExecInContainer =>
    () =>
      Promise.resolve({ exitCode, output });
  expect(await ask(command, { exec: ends(0, "") }), "success", "exit code 0");
  expect(await ask(command, { exec: ends(7, "no\nqueue\n") }), "failure", 'exit code 7: "no queue"');
  expect(await ask(command), "unknown", "not to be run");
});

test("exec: ends a command that takes too long, and waits for its end", async () => {
  const command = { type: "exec", command: ["check"] } as const;
  let ended = false;
  const exec: ExecInContainer = (_, signal) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () =>
        setImmediate(() => {
          ended = true;
          reject(signal.reason);
        }),
      );
    });
  expect(await ask(command, { exec, timeoutMs: SHORT_MS }), "failure", "did not end within 50 ms");
  assert.ok(ended);
});

interface Health {
  readonly status: number;
  readonly asked: string[];
}

async function healthServer(t: TestContext, health: Health): Promise<number> {
  const server = new grpc.Server();
  const raw = (bytes: Buffer) => bytes;
  const method = {
    path: "/grpc.health.v1.Health/Check",
    requestStream: false,
    responseStream: false,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  } as const;
  const check: grpc.handleUnaryCall<Buffer, Buffer> = ({ request }, callback) => {
    const service = request.subarray(request.byteLength > 130 ? 3 : 2).toString();
    health.asked.push(service);
    if (service === "gone") callback({ code: grpc.status.NOT_FOUND, details: "unknown service: gone" });
    else callback(null, Buffer.from(health.status === 0 ? [] : [0x08, health.status]));
  };
  server.addService({ check: method }, { check });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${HOST}:0`, grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  t.after(() => server.forceShutdown());
  return port;
}

test("gRPC: only SERVING passes", async (t) => {
  for (const [status, outcome, message] of [
    [1, "success", "SERVING"],
    [2, "failure", "NOT_SERVING"],
    [0, "failure", "UNKNOWN"],
    [9, "failure", "9"],
  ] as const) {
    const port = await healthServer(t, { status, asked: [] });
    expect(await ask({ type: "grpc", port, service: "" }), outcome, message);
  }
});

test("gRPC: queries the service by name", async (t) => {
  const health = { status: 1, asked: [] as string[] };
  const port = await healthServer(t, health);
  const services = ["", "shop.Cart", "x".repeat(300)];
  for (const service of services) expect(await ask({ type: "grpc", port, service }), "success", "SERVING");
  assert.deepEqual(health.asked, services);
  expect(
    await ask({ type: "grpc", port, service: "gone" }),
    "failure",
    'gRPC NOT_FOUND, the server doesn\'t have the service: "unknown service: gone"',
  );
});

test("gRPC: each kind of failure has its own message", async (t) => {
  const server = new grpc.Server();
  const port = await new Promise<number>((resolve) => {
    server.bindAsync(`${HOST}:0`, grpc.ServerCredentials.createInsecure(), (_, bound) => resolve(bound));
  });
  t.after(() => server.forceShutdown());
  expect(await ask({ type: "grpc", port, service: "" }), "failure", /^gRPC UNIMPLEMENTED, .*Health/);
  const plain = await listen(
    t,
    createHttpServer((_, response) => response.end("hello")),
  );
  expect(await ask({ type: "grpc", port: plain, service: "" }), "failure", /Protocol error|closed/i);
  const silent = await listen(t, createServer());
  expect(
    await ask({ type: "grpc", port: silent, service: "" }, { timeoutMs: SHORT_MS }),
    "failure",
    "no answer within 50 ms",
  );
  const nobody = await unusedPort();
  expect(
    await ask({ type: "grpc", port: nobody, service: "" }),
    "failure",
    `connect ECONNREFUSED ${HOST}:${nobody}`,
  );
});

async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > end) assert.fail("waited 60 s in vain");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
