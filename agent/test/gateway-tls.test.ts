import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect as connectHttp2 } from "node:http2";
import { request as requestTls } from "node:https";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { type TestContext, test } from "node:test";
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { CertificateAuthority } from "@forage/identity/ca";
import { startBackend } from "./backend.ts";
import { GatewayUnderTest, service, to } from "./gateway-under-test.ts";
import { until } from "./until.ts";

const HOST = "app.example.com";

async function anAuthority(): Promise<CertificateAuthority> {
  return CertificateAuthority.create("test", { nowMs: () => Date.now(), randomBytes });
}

/** Returns a certificate in the coordinator's form. */
async function certificateFor(authority: CertificateAuthority, id: string, ...dnsNames: string[]) {
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames, ipAddresses: [] });
  return { id, chainPem, keyPem };
}

/** Returns the serial number of the server's certificate, or the reason why there is none. */
async function shownTo(port: number, servername: string): Promise<string> {
  const socket = await greet(port, servername).catch((error: Error) => error);
  if (socket instanceof Error) return "none";
  const { serialNumber, subjectaltname } = socket.getPeerCertificate();
  socket.destroy();
  return subjectaltname ? serialNumber : "none";
}

function greet(port: number, servername: string, ALPNProtocols = ["http/1.1"]): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      ...{ host: "127.0.0.1", port, servername, ALPNProtocols, rejectUnauthorized: false },
    });
    socket.once("secureConnect", () => resolve(socket));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("closed")));
  });
}

/** Sends a request on a new, verified connection. */
function askTls(port: number, host: string, ca: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, servername: host, ca, agent: false, headers: { host } };
    const asking = requestTls(options, (answer) => {
      let body = "";
      answer.on("data", (part) => {
        body += part;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    asking.on("error", reject);
    asking.end();
  });
}

const serial = (pem: string): string => {
  const [, der = ""] = /-----BEGIN CERTIFICATE-----([^-]+)-----END/.exec(pem) ?? [];
  return der.replace(/\s/g, "");
};

async function shownPem(port: number, servername: string): Promise<string> {
  const socket = await greet(port, servername);
  const { raw } = socket.getPeerCertificate();
  socket.destroy();
  return raw.toString("base64");
}

test("a host with a certificate serves HTTPS, and redirects HTTP to it", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  const ca = await anAuthority();
  const exact = await certificateFor(ca, "exact", HOST);
  const wild = await certificateFor(ca, "wild", "*.example.com", "x.example.com");
  const message = await gateway.apply({
    full: true,
    certificates: [exact, wild],
    hosts: [
      { hostname: HOST, rules: [to("a")], certificate: "exact" },
      { hostname: "*.example.com", rules: [to("a")], certificate: "wild" },
      { hostname: "plain.example.org", rules: [to("a")] },
    ],
  });
  assert.equal(message, "");
  const { https, http } = gateway.ports;
  const answer = await askTls(https, HOST, ca.certPem);
  assert.equal(answer.status, 200);
  const { headers } = JSON.parse(answer.body);
  assert.equal(headers["x-forwarded-proto"], "https");
  assert.equal((await askTls(https, "x.example.com", ca.certPem)).status, 200);
  assert.equal(await shownPem(https, HOST), serial(exact.chainPem));
  assert.equal(await shownPem(https, "y.example.com"), serial(wild.chainPem));
  assert.equal(await shownTo(https, "plain.example.org"), "none");
  assert.equal(await shownTo(https, "unknown.example"), "none");

  for (const host of [HOST, `${HOST}:${http}`]) {
    const { status, headers: answered } = await gateway.ask(host, "/x?y=z");
    assert.deepEqual([status, answered.location], [308, `https://${HOST}:${https}/x?y=z`]);
  }
  const posted = await gateway.ask("x.example.com", "/", { method: "POST", body: "x" });
  assert.deepEqual([posted.status, posted.headers.location], [308, `https://x.example.com:${https}/`]);
  assert.equal((await gateway.ask("plain.example.org", "/")).status, 200);
});

test("speaks HTTP/2 with clients that support it, with TLS and without", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  const ca = await anAuthority();
  await gateway.apply({
    full: true,
    certificates: [await certificateFor(ca, "c", HOST)],
    hosts: [
      { hostname: HOST, rules: [to("a")], certificate: "c" },
      { hostname: "plain.example", rules: [to("a")] },
    ],
  });
  const { http, https } = gateway.ports;
  for (const [session, authority] of [
    [connectHttp2(`https://127.0.0.1:${https}`, { servername: HOST, ca: ca.certPem }), HOST],
    [connectHttp2(`http://127.0.0.1:${http}`), "plain.example"],
  ] as const) {
    const stream = session.request({ ":path": "/h2", ":authority": authority });
    let body = "";
    for await (const part of stream) body += part;
    assert.equal(JSON.parse(body).url, "/h2");
    session.destroy();
  }
  const socket = await greet(https, HOST, ["h2", "http/1.1"]);
  assert.equal(socket.alpnProtocol, "h2");
  socket.destroy();
});

test("new clients get the replaced certificate, and existing connections remain", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  const ca = await anAuthority();
  const host = { hostname: HOST, rules: [to("a")], certificate: "c" };
  const first = await certificateFor(ca, "c", HOST);
  await gateway.apply({ full: true, certificates: [first], hosts: [host] });
  const { https } = gateway.ports;
  const session = connectHttp2(`https://127.0.0.1:${https}`, { servername: HOST, ca: ca.certPem });
  let closed = false;
  session.on("close", () => {
    closed = true;
  });
  session.on("goaway", () => {
    closed = true;
  });
  const askAgain = async (): Promise<void> => {
    const stream = session.request({ ":path": "/", ":authority": HOST });
    for await (const _ of stream);
  };
  for (let round = 0; round < 5; round++) {
    await askAgain();
    const next = await certificateFor(ca, "c", HOST);
    assert.equal(await gateway.apply({ certificates: [next] }), "");
    await until("the new one is shown", async () => (await shownPem(https, HOST)) === serial(next.chainPem));
    await askAgain();
    assert.equal(closed, false);
  }
  session.destroy();
});

test("reports an invalid certificate, and keeps using the previous one", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  const ca = await anAuthority();
  const good = await certificateFor(ca, "c", HOST);
  const other = await certificateFor(ca, "c", HOST);
  const host = { hostname: HOST, rules: [to("a")], certificate: "c" };
  await gateway.apply({ full: true, certificates: [good], hosts: [host] });
  const { https } = gateway.ports;
  for (const [bad, why] of [
    [{ ...good, keyPem: other.keyPem }, /its key belongs to another certificate/],
    [{ ...good, keyPem: "secret stuff" }, /its key is not a private key in PEM/],
    [{ ...good, chainPem: "-----BEGIN CERTIFICATE-----\nAAAA\n" }, /its chain is not a certificate in PEM/],
  ] as const) {
    const message = await gateway.apply({ certificates: [bad] });
    assert.match(message, why);
    assert.match(message, /app\.example\.com/);
    assert.doesNotMatch(message, /secret stuff|PRIVATE/);
    assert.equal(await shownPem(https, HOST), serial(good.chainPem));
  }
  assert.equal(await gateway.apply({ certificates: [other] }), "");
  await until("the next is shown", async () => (await shownPem(https, HOST)) === serial(other.chainPem));
});

/** Starts a server that decrypts the stream itself and responds with its name. */
async function startTlsBackend(t: TestContext, name: string, ca: CertificateAuthority) {
  const { chainPem, keyPem } = await certificateFor(ca, name, "pass.example.com", `${name}.example.com`);
  const server = createTlsServer({ cert: chainPem, key: keyPem }, (socket) => {
    socket.on("error", () => undefined);
    socket.end(name);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  t.after(() => server.close());
  return { port, chainPem };
}

async function saidBy(port: number, servername: string): Promise<string> {
  const socket = await greet(port, servername);
  let said = "";
  for await (const part of socket) said += part;
  return said;
}

test("passthrough forwards the encrypted stream by the client's server name", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const ca = await anAuthority();
  const one = await startTlsBackend(t, "one", ca);
  const two = await startTlsBackend(t, "two", ca);
  gateway.serve(service("one", [one.port]), service("two", [two.port]));
  const backend = (name: string, weight = 1) => ({ namespace: "shop", service: name, port: 80, weight });
  await gateway.hosts(
    { hostname: "pass.example.com", passthrough: [backend("one")] },
    { hostname: "*.wild.example.com", passthrough: [backend("two")] },
    { hostname: "both.example.com", passthrough: [backend("one"), backend("two")] },
  );
  const { https } = gateway.ports;
  assert.equal(await saidBy(https, "pass.example.com"), "one");
  assert.equal(await shownPem(https, "pass.example.com"), serial(one.chainPem));
  assert.equal(await saidBy(https, "x.wild.example.com"), "two");
  const seen = new Set<string>();
  for (let i = 0; i < 200 && seen.size < 2; i++) seen.add(await saidBy(https, "both.example.com"));
  assert.deepEqual([...seen].sort(), ["one", "two"]);
  assert.equal(await shownTo(https, "other.example.com"), "none");
  assert.equal((await gateway.ask("pass.example.com", "/")).status, 404, "no route covers plain requests");
});

test("the HTTPS port does not answer plain text", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const ca = await anAuthority();
  await gateway.apply({
    full: true,
    certificates: [await certificateFor(ca, "c", HOST)],
    hosts: [{ hostname: "*", rules: [to("a")], certificate: "c" }],
  });
  const socket = connectTcp(gateway.ports.https, "127.0.0.1");
  socket.write(`GET / HTTP/1.1\r\nhost: ${HOST}\r\n\r\n`);
  let said = "";
  socket.on("data", (part) => {
    said += part;
  });
  await new Promise((resolve) => socket.on("close", resolve).on("error", () => undefined));
  assert.equal(said, "");
});
