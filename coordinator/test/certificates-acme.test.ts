import assert from "node:assert/strict";
import { createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { CertificateAuthority } from "@forage/identity/ca";
import { splitCertificates } from "@forage/identity/pem";
import { type Pebble, type PebbleOptions, startPebble } from "../../hack/lib/pebble.ts";
import type { Config } from "../src/config.ts";
import {
  type CertificateWorld,
  type GatewayStandIn,
  startCertificateWorld,
  startGatewayStandIn,
} from "./support/certificate-world.ts";
import { until } from "./support/until.ts";

const HOST = "app.example.test";

test("obtains a certificate that chains to the authority's root", async (t) => {
  const { pebble, world } = await start(t);
  world.controller.setHostnames(new Set([HOST]));
  const { chainPem, keyPem } = await world.issued(HOST);
  const [leaf, ...issuers] = splitCertificates(chainPem).map((pem) => new X509Certificate(pem));
  assert.ok(leaf?.checkHost(HOST));
  assert.ok(leaf?.checkPrivateKey(createPrivateKey(keyPem)));
  const root = new X509Certificate(pebble.root);
  const last = issuers.at(-1) ?? leaf;
  assert.ok(last?.checkIssued(root) && last.verify(root.publicKey));
  assert.deepEqual(
    world.events.map(({ reason, name }) => [reason, name]),
    [["CertificateIssued", HOST]],
  );
  assert.deepEqual(world.controller.challenges(), [], "challenges are removed after use");
});

test("retries nonces that the authority refuses without losing a certificate", async (t) => {
  const { world } = await start(t, { rejectedNonces: 40 });
  const hostnames = ["a.example.test", "b.example.test", "c.example.test"];
  world.controller.setHostnames(new Set(hostnames));
  for (const hostname of hostnames) await world.issued(hostname);
});

test("reports an authority that is down at first, and retries by itself", async (t) => {
  const { pebble, world } = await start(t);
  await pebble.stop();
  world.controller.setHostnames(new Set([HOST]));
  const message = await world.pending(HOST, "IssuerUnavailable");
  // The connection of an earlier request may end at this moment.
  assert.match(
    message,
    /^the authority at https:\/\/127\.0\.0\.1:\d+ can't be reached: .*ECONN(?:REFUSED|RESET)/,
  );
  await until("more than one attempt was made", () => (world.controller.pause?.failures ?? 0) >= 2);
  assert.equal(world.controller.state(HOST), undefined, "it is nothing to do with the hostname");
  await pebble.start();
  await world.issued(HOST);
  assert.equal(world.controller.pause, undefined);
});

test("reports an authority with an unknown root", async (t) => {
  const { pebble, gateway } = await start(t);
  const world = await startCertificateWorld(t, gateway, settingsOf(pebble, await anotherRoot(t)));
  world.controller.setHostnames(new Set([HOST]));
  const message = await world.pending(HOST, "IssuerUnavailable");
  assert.match(message, /name its root in certificates\.acme\.caFile/);
});

test("reports a wrongly answered challenge with the authority's text, waits, and recovers", async (t) => {
  const { world } = await start(t);
  world.answer("wrongly");
  world.controller.setHostnames(new Set([HOST]));
  const message = await world.pending(HOST, "IssueFailed");
  assert.match(message, /^unauthorized: .*\(tried again at \d{4}-/);
  const { hostname, failures, retryAtMs = 0, failedAtMs = 0 } = world.controller.state(HOST) ?? {};
  assert.ok(hostname === HOST && failures !== undefined && failures >= 1);
  assert.ok(retryAtMs >= failedAtMs + 300);
  const recorded = world.events.filter(({ reason }) => reason === "CertificateFailed");
  assert.match(recorded[0]?.message ?? "", /^unauthorized: /);
  world.answer("rightly");
  await world.issued(HOST);
  assert.equal(world.controller.state(HOST)?.failures, 0);
});

test("does not trigger the authority's validation before the gateways serve the answer", async (t) => {
  const { world, pebble } = await start(t);
  world.answer("never");
  world.controller.setHostnames(new Set([HOST]));
  await until("the challenge is posted", () => world.controller.challenges().length === 1);
  const [challenge] = world.controller.challenges();
  assert.equal(challenge?.hostname, HOST);
  await until("the authority has the order", () =>
    /There are now \d+ (orders|authorizations)/.test(pebble.readLog()),
  );
  assert.deepEqual(world.requests, []);
  world.answer("rightly");
  world.controller.served(new Set([challenge?.token ?? ""]));
  await world.issued(HOST);
  assert.deepEqual(new Set(world.requests), new Set([`/.well-known/acme-challenge/${challenge?.token}`]));
});

test("orders no certificate again after a restart, and keeps the account", async (t) => {
  const { world, pebble } = await start(t);
  world.controller.setHostnames(new Set([HOST]));
  const { chainPem } = await world.issued(HOST);
  await world.restart();
  assert.equal((await world.issued(HOST)).chainPem, chainPem);
  world.controller.setHostnames(new Set([HOST, "b.example.test"]));
  await world.issued("b.example.test");
  assert.equal(pebble.readLog().match(/There are now \d+ accounts in memory/g)?.length, 1);
  assert.equal((await world.issued(HOST)).chainPem, chainPem);
});

test("registers the account again with an authority that has lost it", async (t) => {
  const { world, pebble } = await start(t);
  world.controller.setHostnames(new Set([HOST]));
  const first = await world.issued(HOST);
  await pebble.stop();
  await pebble.start();
  world.controller.renew(HOST);
  const second = await world.issued(HOST, first);
  const last = new X509Certificate(splitCertificates(second.chainPem).at(-1) ?? "");
  assert.ok(last.verify(new X509Certificate(pebble.root).publicKey));
  assert.equal(world.events.filter(({ reason }) => reason === "CertificateFailed").length, 0);
});

test("renews short-lived certificates in time, with another key", async (t) => {
  const { world } = await start(t, { validitySeconds: 15 });
  world.controller.setHostnames(new Set([HOST]));
  const first = await world.issued(HOST);
  const second = await world.issued(HOST, first);
  assert.notEqual(second.keyPem, first.keyPem);
  const leaf = new X509Certificate(first.chainPem);
  assert.ok(
    new X509Certificate(second.chainPem).validFromDate < leaf.validToDate,
    "before the first has ended",
  );
});

test("refuses a wildcard with the reason, without a request to the authority", async (t) => {
  const { world, pebble } = await start(t);
  world.controller.setHostnames(new Set(["*.example.test"]));
  const message = await world.pending("*.example.test", "Refused");
  assert.match(message, /HTTP-01.*wildcards.*tls\.certificate_ref/);
  assert.doesNotMatch(pebble.readLog(), /example\.test/);
});

test("binds an account to a customer of the authority", async (t) => {
  const hmacKey = randomBytes(32).toString("base64url");
  const { pebble, gateway, world } = await start(t, { externalKeys: { "customer-1": hmacKey } });
  world.controller.setHostnames(new Set([HOST]));
  const message = await world.pending(HOST, "IssuerUnavailable");
  assert.match(message, /no account with the authority: externalAccountRequired/);
  const { acme } = settingsOf(pebble);
  const hmacKeyFile = await fileOf(t, hmacKey);
  const bound = await startCertificateWorld(t, gateway, {
    issuer: "acme",
    acme: acme && { ...acme, externalAccountBinding: { keyId: "customer-1", hmacKeyFile } },
  });
  bound.controller.setHostnames(new Set([HOST]));
  await bound.issued(HOST);
  assert.ok(bound.log.length > 0 && !bound.log.join("").includes(hmacKey));
});

test("logs no keys", async (t) => {
  const { world } = await start(t);
  world.answer("wrongly");
  world.controller.setHostnames(new Set([HOST]));
  await world.pending(HOST, "IssueFailed");
  world.answer("rightly");
  const { keyPem } = await world.issued(HOST);
  const log = world.log.join("");
  assert.ok(world.log.length >= 3);
  assert.doesNotMatch(log, /PRIVATE KEY/);
  for (const line of keyPem.split("\n").filter((text) => text.length > 40)) assert.ok(!log.includes(line));
});

async function start(
  t: TestContext,
  options: Omit<PebbleOptions, "httpPort"> = {},
): Promise<{ readonly pebble: Pebble; readonly gateway: GatewayStandIn; readonly world: CertificateWorld }> {
  const gateway = await startGatewayStandIn(t);
  const pebble = await startPebble({ ...options, httpPort: gateway.port });
  const world = await startCertificateWorld(t, gateway, settingsOf(pebble));
  t.after(() => pebble.close());
  return { pebble, gateway, world };
}

async function fileOf(t: TestContext, text: string): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), "forage-acme-"));
  t.after(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, "file"), text, { mode: 0o600 });
  return join(dir, "file");
}

/** Returns the PEM file of an unknown authority. */
async function anotherRoot(t: TestContext): Promise<string> {
  const { certPem } = await CertificateAuthority.create("other", { nowMs: Date.now, randomBytes });
  return fileOf(t, certPem);
}

function settingsOf(
  { directory, caFile }: Pick<Pebble, "directory" | "caFile">,
  otherCaFile?: string,
): Config["certificates"] {
  return {
    issuer: "acme",
    acme: { directory, caFile: otherCaFile ?? caFile, email: "ops@example.com", termsAgreed: true },
  };
}
