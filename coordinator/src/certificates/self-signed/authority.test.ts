import assert from "node:assert/strict";
import { createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { test } from "node:test";
import { createServer, connect as tlsConnect } from "node:tls";
import { VirtualClock } from "@forage/common/virtual-clock";
import { splitCertificates } from "@forage/identity/pem";
import { openVault } from "../../objects/open-vault.ts";
import { createMemoryStore } from "../../store/index.ts";
import { createAuthority, signLeaf } from "./authority.ts";
import { selfSignedIssuer } from "./issuer.ts";
import { keepAuthority } from "./keep-authority.ts";

const DAY_MS = 24 * 3_600_000;
const options = { nowMs: Date.now(), randomBytes };

test("issues a certificate that is valid for its hostname for 90 days and chains to the authority", async () => {
  const authority = await createAuthority("test", options);
  const issued = await signLeaf(authority, "app.example.test", options);
  const [leafPem = "", rootPem = ""] = splitCertificates(issued.chainPem);
  const leaf = new X509Certificate(leafPem);
  const root = new X509Certificate(rootPem);
  assert.ok(leaf.checkIssued(root) && leaf.verify(root.publicKey));
  assert.ok(leaf.checkPrivateKey(createPrivateKey(issued.keyPem)));
  assert.ok(leaf.checkHost("app.example.test"));
  assert.equal(leaf.checkHost("other.example.test"), undefined);
  assert.ok(Math.abs(leaf.validToDate.getTime() - options.nowMs - 90 * DAY_MS) < 2_000);
  assert.ok(!leaf.ca && root.ca);
});

test("issues a wildcard certificate that covers one label", async () => {
  const leaf = new X509Certificate(
    (await signLeaf(await createAuthority("test", options), "*.example.test", options)).chainPem,
  );
  assert.ok(leaf.checkHost("a.example.test"));
  assert.equal(leaf.checkHost("a.b.example.test"), undefined);
  assert.equal(leaf.checkHost("example.test"), undefined);
});

test("issues no certificate that outlives its authority", async () => {
  const authority = await createAuthority("test", { ...options, nowMs: options.nowMs - 3_600 * DAY_MS });
  const { chainPem, notAfterMs } = await signLeaf(authority, "a.test", options);
  assert.ok(notAfterMs <= new X509Certificate(authority.certPem).validToDate.getTime());
  assert.equal(new X509Certificate(chainPem).validToDate.getTime(), Math.floor(notAfterMs / 1000) * 1000);
});

test("is accepted over TLS only by clients that trust the root, even for the longest hostname", async (t) => {
  const hostname = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.example.test`;
  const authority = await createAuthority("a cluster with quite a long name that goes on and on", options);
  const { chainPem, keyPem } = await signLeaf(authority, hostname, options);
  const server = createServer({ cert: chainPem, key: keyPem }, (socket) => socket.end("hello"));
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const trusting = tlsConnect({ port, host: "127.0.0.1", servername: hostname, ca: authority.certPem });
  await once(trusting, "secureConnect");
  trusting.destroy();
  const stranger = tlsConnect({ port, host: "127.0.0.1", servername: hostname });
  await assert.rejects(once(stranger, "secureConnect"), /certificate/);
});

test("creates the authority once, keeps it across restarts, and stores no key in plain text", async () => {
  const store = createMemoryStore({ clock: new VirtualClock() });
  const vault = await openVault([{ id: "k", bytes: randomBytes(32) }], store);
  const keep = () => keepAuthority({ store, vault, cluster: "test", make: () => options });
  const [first, beside] = await Promise.all([keep(), keep()]);
  assert.deepEqual(beside, first);
  assert.deepEqual(await keep(), first);
  const make = () => options;
  assert.equal(selfSignedIssuer(await keep(), make).id, selfSignedIssuer(first, make).id);
  const body = first.keyPem.split("\n")[1] ?? "";
  const { records } = await store.range("");
  assert.ok(body.length > 40 && records.length > 1);
  for (const { value } of records) {
    assert.ok(!Buffer.from(value).includes(body));
    assert.ok(!Buffer.from(value).includes("PRIVATE KEY"));
    // The store does not contain the decoded bytes either.
    assert.ok(!Buffer.from(value).includes(Buffer.from(body, "base64").subarray(0, 32)));
  }
});
