import assert from "node:assert/strict";
import { KeyObject, randomBytes, webcrypto } from "node:crypto";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { afterEach, before, describe, it } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import type { CertificateAuthority } from "../src/ca.ts";
import { mintJoinToken, parseJoinToken } from "../src/join-token.ts";
import { pinsOf, splitCertificates } from "../src/pem.ts";
import { probeServer } from "../src/probe-server.ts";
import { TlsServer } from "../src/tls-server/tls-server.ts";
import { X509CertificateGenerator } from "../src/x509.ts";
import { anAuthority, aServer } from "./cluster.ts";
import { anEchoServer } from "./echo.ts";

const never = new AbortController().signal;

describe("probeServer", () => {
  let ca: CertificateAuthority;
  let evil: CertificateAuthority;
  const cleanups: (() => void | Promise<void>)[] = [];

  before(async () => {
    [ca, evil] = [await anAuthority(), await anAuthority()];
  });

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });

  async function listen(server: Server): Promise<number> {
    const sockets = new Set<Socket>();
    server.on("connection", (socket) => sockets.add(socket.on("error", () => {})));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanups.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return (server.address() as AddressInfo).port;
  }

  /** Starts a server that terminates TLS itself and keeps every byte that it receives. */
  async function aListener(cert: string, key: string) {
    const seen: Buffer[] = [];
    const done = Promise.withResolvers<void>();
    const server = createTlsServer({ cert, key, ALPNProtocols: ["h2"] }, (socket) => {
      socket.on("data", (bytes: Buffer) => seen.push(bytes));
      socket.on("error", () => {});
    });
    server.on("connection", (raw: Socket) => raw.once("close", () => done.resolve()));
    const port = await listen(server);
    return { port, bytes: () => done.promise.then(() => Buffer.concat(seen)) };
  }

  it("returns the pinned root of a server", async () => {
    const tls = new TlsServer({ material: await aServer(ca), nowMs: Date.now });
    const server = anEchoServer(() => tls);
    const { port } = await tls.listen(server, { host: "127.0.0.1", port: 0 });
    cleanups.push(async () => {
      await tls.close();
      server.forceShutdown();
    });
    for (const host of ["localhost", "127.0.0.1"]) {
      const { rootPem, pin } = await probeServer(host, port, [evil.pin, ca.pin], never);
      assert.equal(pin, ca.pin);
      assert.deepEqual(splitCertificates(rootPem), splitCertificates(ca.certPem));
    }
  });

  it("stops if the server has another authority, without sending the token's secret", async () => {
    const { token } = mintJoinToken({ pin: ca.pin, nowMs: Date.now(), randomBytes });
    const { pin, secret } = parseJoinToken(token);
    const { chainPem, keyPem } = await evil.issueServer({ dnsNames: ["localhost"], ipAddresses: [] });
    const listener = await aListener(chainPem, keyPem);
    await assert.rejects(
      probeServer("localhost", listener.port, [pin], never),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, "PIN_MISMATCH");
        assert.ok(!error.message.includes(secret));
        return true;
      },
    );
    assert.equal((await listener.bytes()).length, 0, "not one byte was sent inside the connection");
  });

  it("rejects a false certificate followed by the true root", async () => {
    const { chainPem, keyPem } = await evil.issueServer({ dnsNames: ["localhost"], ipAddresses: [] });
    const [leaf = ""] = splitCertificates(chainPem);
    const listener = await aListener(leaf + ca.certPem, keyPem);
    await assert.rejects(probeServer("localhost", listener.port, [ca.pin], never), {
      code: "NO_ROOT_PRESENTED",
    });
    assert.equal((await listener.bytes()).length, 0);
  });

  it("requires the root in the chain", async () => {
    const { chainPem, keyPem } = await ca.issueServer({ dnsNames: ["localhost"], ipAddresses: [] });
    const { port } = await aListener(splitCertificates(chainPem)[0] ?? "", keyPem);
    await assert.rejects(probeServer("localhost", port, [ca.pin], never), { code: "NO_ROOT_PRESENTED" });
  });

  it("requires a root that is an authority", async () => {
    const keys = await webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
      "sign",
      "verify",
    ]);
    const signingAlgorithm = { name: "ECDSA", hash: "SHA-256" };
    const cert = await X509CertificateGenerator.createSelfSigned({
      name: "CN=localhost",
      keys,
      signingAlgorithm,
    });
    const key = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString();
    const { port } = await aListener(cert.toString("pem"), key);
    const [pin = ""] = pinsOf(cert.toString("pem"));
    await assert.rejects(probeServer("localhost", port, [pin], never), { code: "NO_ROOT_PRESENTED" });
  });

  it("reports a port without a listener, and a listener without TLS", async () => {
    const server = createTcpServer((socket) => socket.end("hello\n"));
    const port = await listen(server);
    await assert.rejects(probeServer("127.0.0.1", port, [ca.pin], never), { code: "CONNECT_FAILED" });
    server.close();
    await assert.rejects(probeServer("127.0.0.1", port, [ca.pin], never), {
      code: "CONNECT_FAILED",
      retryable: true,
    });
  });

  it("reports that the server closed the connection", async () => {
    const port = await listen(createTcpServer((socket) => socket.end()));
    await assert.rejects(probeServer("127.0.0.1", port, [ca.pin], never), { code: "CONNECT_FAILED" });
  });

  it("fails after a timeout, and at once when the signal is aborted", async () => {
    const port = await listen(createTcpServer());
    await assert.rejects(probeServer("127.0.0.1", port, [ca.pin], never, 100), { code: "TIMEOUT" });
    const controller = new AbortController();
    const probing = probeServer("127.0.0.1", port, [ca.pin], controller.signal);
    controller.abort();
    await assert.rejects(probing, { code: "ABORTED" });
    await assert.rejects(probeServer("127.0.0.1", port, [ca.pin], controller.signal), { code: "ABORTED" });
  });
});
