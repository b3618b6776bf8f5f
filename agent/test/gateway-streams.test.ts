import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { connect as connectHttp2, constants } from "node:http2";
import { type TestContext, test } from "node:test";
import {
  type ClientDuplexStream,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  status,
} from "@grpc/grpc-js";
import { startBackend } from "./backend.ts";
import { GatewayUnderTest, service, to } from "./gateway-under-test.ts";
import { EchoSocket, echoUpgrades } from "./web-socket.ts";

const HOST = "app.example.com";

test("passes WebSockets over HTTP/1.1 and HTTP/2", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  echoUpgrades(a.server);
  gateway.serve(service("a", [a.port]));
  // The time-out applies to the response; an upgraded connection may last longer.
  await gateway.hosts({ hostname: HOST, rules: [to("a", { timeoutMs: 1_000n })] });
  const socket = await EchoSocket.open(gateway.ports.http, HOST);
  await socket.echo("hello");
  await socket.echo("x".repeat(300_000));
  socket.close();

  const session = connectHttp2(`http://127.0.0.1:${gateway.ports.http}`);
  t.after(() => session.destroy());
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  const stream = session.request({
    ...{ ":method": "CONNECT", ":protocol": "websocket", ":path": "/", ":authority": HOST },
    [constants.HTTP2_HEADER_SCHEME]: "http",
    "sec-websocket-version": "13",
  });
  const headers = await new Promise<Record<string, unknown>>((resolve, reject) => {
    stream.once("response", resolve);
    stream.once("error", reject);
  });
  assert.equal(headers[":status"], 200);
  stream.write("over h2");
  const [part] = await new Promise<[Buffer]>((resolve) => stream.once("data", (it: Buffer) => resolve([it])));
  assert.equal(part.toString(), "over h2");
  stream.close();
});

test("serves IPv6 and IPv4 on the same port, whichever family the pods have", {
  skip: existsSync("/proc/net/if_inet6") ? false : "the kernel has no IPv6",
}, async (t) => {
  const gateway = await GatewayUnderTest.start(t, { address: "::" });
  const six = await startBackend(t, "six", undefined, "::1");
  const endpoint = { pod: "p", node: "n2", hostIpv6: "::1", hostPorts: [six.port] };
  gateway.serve(service("six", [], { endpoints: [endpoint] }));
  await gateway.hosts({ hostname: HOST, rules: [to("six")] });
  for (const host of ["127.0.0.1", "::1"]) {
    const answer = await gateway.ask(HOST, "/", { host });
    assert.equal(JSON.parse(answer.body).backend, "six");
  }
});

test("passes bodies in both directions piece by piece, whatever their size", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const parts = 64;
  const a = await startBackend(t, "a", (_, response) => {
    response.write("first");
    setTimeout(() => response.end("second"), 50);
  });
  const large = await startBackend(t, "large", (seen, response) => response.end(seen.body));
  gateway.serve(service("a", [a.port]), service("large", [large.port]));
  await gateway.hosts({
    hostname: HOST,
    rules: [to("large", { match: { path: { value: "/large" } } }), to("a")],
  });
  assert.equal((await gateway.ask(HOST, "/")).body, "firstsecond");
  const body = "0123456789abcdef".repeat((parts * 1024 * 1024) / 4 / 16);
  const answer = await gateway.ask(HOST, "/large", { method: "POST", body });
  assert.equal(answer.body.length, body.length);
});

const text = { serialize: (it: string) => Buffer.from(it), deserialize: (it: Buffer) => it.toString() };
const method = (path: string, stream: boolean) => ({
  ...{ path, requestStream: stream, responseStream: stream },
  ...{ requestSerialize: text.serialize, requestDeserialize: text.deserialize },
  ...{ responseSerialize: text.serialize, responseDeserialize: text.deserialize },
});

async function startGrpc(t: TestContext): Promise<number> {
  const server = new Server();
  const definition = {
    say: method("/test.Echo/Say", false),
    talk: method("/test.Echo/Talk", true),
    fail: method("/test.Echo/Fail", false),
  };
  server.addService(definition, {
    say: (call: { request: string }, done: (error: null, value: string) => void) => done(null, call.request),
    fail: (_: unknown, done: (error: object) => void) =>
      done({ code: status.FAILED_PRECONDITION, details: "not now" }),
    talk: (call: ClientDuplexStream<string, string>) => {
      call.on("data", (it: string) => call.write(`${it}!`));
      call.on("end", () => call.end());
    },
  } as never);
  t.after(() => server.forceShutdown());
  return new Promise((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    ),
  );
}

test("passes gRPC with its status to ports with a matching name", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const port = await startGrpc(t);
  const named = (name: string) => ({ ports: [{ name, port: 80, protocol: "TCP", targetPort: 8080 }] });
  gateway.serve(service("echo", [port], named("grpc-echo")));
  const rule = to("echo", { match: { path: { value: "/test.Echo" }, method: "POST" } });
  await gateway.hosts({ hostname: HOST, rules: [rule] });
  const { makeGenericClientConstructor } = await import("@grpc/grpc-js");
  const Echo = makeGenericClientConstructor({}, "Echo");
  const client = new Echo(`127.0.0.1:${gateway.ports.http}`, credentials.createInsecure(), {
    "grpc.default_authority": HOST,
  });
  t.after(() => client.close());
  const say = (path: string, message: string) =>
    new Promise<string>((resolve, reject) =>
      client.makeUnaryRequest(
        path,
        text.serialize,
        text.deserialize,
        message,
        new Metadata(),
        {},
        (error, value) => (error ? reject(error) : resolve(value ?? "")),
      ),
    );
  assert.equal(await say("/test.Echo/Say", "hello"), "hello");
  await assert.rejects(say("/test.Echo/Fail", "x"), { code: status.FAILED_PRECONDITION, details: "not now" });

  const call = client.makeBidiStreamRequest(
    "/test.Echo/Talk",
    text.serialize,
    text.deserialize,
    new Metadata(),
    {},
  );
  const heard: string[] = [];
  for (const word of ["one", "two"]) {
    call.write(word);
    await new Promise<void>((resolve, reject) => {
      call.once("error", reject);
      call.once("data", (it: string) => {
        heard.push(it);
        resolve();
      });
    });
  }
  call.end();
  assert.deepEqual(heard, ["one!", "two!"]);

  // Renaming a port changes its protocol.
  gateway.serve(service("echo", [port], named("http")));
  await assert.rejects(async () => {
    for (let i = 0; i < 500; i++) await say("/test.Echo/Say", "hello");
  });
  gateway.serve(service("echo", [port], named("h2c")));
  let answer = "";
  for (let i = 0; i < 500 && answer === ""; i++)
    answer = await say("/test.Echo/Say", "again").catch(() => "");
  assert.equal(answer, "again");
});
