import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { splitCertificates } from "@forage/identity/pem";
import type { Certificate } from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { aContainerService, aRequest, aService } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const HOST = "shop.example.test";

test("issues a certificate of the development CA for a route that terminates TLS without a secret", async (t) => {
  const world = await startWorld(t, {}, { certificates: { issuer: "self-signed" } });
  await applyRoute(world, [HOST, "*.example.test"]);
  const { chainPem } = await inState(world, HOST, "ready");
  await inState(world, "*.example.test", "ready");
  const { certificatePem } = await world.operator().getCertificateAuthority({});
  const root = new X509Certificate(certificatePem);
  const [leaf = ""] = splitCertificates(chainPem);
  assert.ok(new X509Certificate(leaf).verify(root.publicKey));

  // Events are written slightly after the change.
  await until("the event is published", async () => {
    const { events } = await world
      .operator()
      .listEvents({ namespace: "", filter: undefined, limit: 0, after: 0n });
    return events.some(({ reason, name }) => reason === "CertificateIssued" && name === HOST);
  });

  const metrics = await (await fetch(`http://127.0.0.1:${world.coordinator.http.port}/metrics`)).text();
  assert.match(metrics, /^forage_certificates_first_expiry_timestamp_seconds \d{10}/m);
  assert.doesNotMatch(metrics, /example\.test/);
  assert.match(metrics, /forage_certificates\{state="ready"\} 2/);
  assert.match(metrics, /forage_certificate_attempts_total\{result="succeeded"\} 2/);

  await world.restart();
  assert.equal((await inState(world, HOST, "ready")).chainPem, chainPem, "it outlives a restart");
  assert.equal((await world.operator().getCertificateAuthority({})).certificatePem, certificatePem);

  await world.operator().renewCertificate({ hostname: HOST });
  await until("another one has come", async () => (await certificateOf(world, HOST))?.chainPem !== chainPem);
});

test("serves the same certificates over HTTP to holders of the same tokens", async (t) => {
  const world = await startWorld(t, {}, { certificates: { issuer: "self-signed" } });
  await applyRoute(world, [HOST]);
  const { chainPem } = await inState(world, HOST, "ready");
  const call = async (path: string, role: "admin" | "viewer", method = "GET") => {
    const url = `http://127.0.0.1:${world.coordinator.http.port}/api/v1/${path}`;
    const headers = { authorization: `Bearer ${await world.token(role)}` };
    const response = await fetch(url, { method, headers });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const all = await call("certificates", "viewer");
  assert.deepEqual([all.status, all.body.issuer], [200, "the cluster's development CA"]);
  const one = await call(`certificates/${HOST}`, "viewer");
  assert.deepEqual([one.body.state, one.body.chainPem], ["ready", chainPem]);
  assert.match(String(one.body.notAfter), /^\d{4}-.*Z$/);
  assert.doesNotMatch(JSON.stringify([all.body, one.body]), /PRIVATE/);
  assert.equal((await call("certificates/none.test", "viewer")).status, 404);
  assert.match(
    String((await call("certificateauthority", "viewer")).body.certificatePem),
    /BEGIN CERTIFICATE/,
  );
  assert.equal((await call(`certificates/${HOST}/renew`, "viewer", "POST")).status, 403);
  assert.equal((await call(`certificates/${HOST}/renew`, "admin", "POST")).status, 200);
  await until("another one has come", async () => (await certificateOf(world, HOST))?.chainPem !== chainPem);
});

test("shows the certificate in the route's conditions", async (t) => {
  const world = await startWorld(t, {}, { certificates: { issuer: "self-signed" } });
  await applyRoute(world, [HOST]);
  await inState(world, HOST, "ready");
  await until("the route says so", async () => (await conditionOf(world))?.status === true);
});

test("names the missing setting in the route without an issuer, and refuses renewals", async (t) => {
  const world = await startWorld(t);
  await applyRoute(world, [HOST]);
  const condition = await conditionOf(world);
  assert.deepEqual([condition?.status, condition?.reason], [false, "IssuerNotConfigured"]);
  assert.deepEqual(await world.operator().listCertificates({ hostname: "" }), {
    certificates: [],
    issuer: "",
  });
  const refused = { code: status.FAILED_PRECONDITION, details: /certificates\.issuer/ };
  await assert.rejects(world.operator().renewCertificate({ hostname: HOST }), refused);
  await assert.rejects(world.operator().getCertificateAuthority({}), refused);
});

test("rejects a renewal by a viewer, and of a hostname that no route needs", async (t) => {
  const world = await startWorld(t, {}, { certificates: { issuer: "self-signed" } });
  const viewer = world.operator(await world.token("viewer"));
  await assert.rejects(viewer.renewCertificate({ hostname: HOST }), { code: status.PERMISSION_DENIED });
  assert.deepEqual((await viewer.listCertificates({ hostname: "" })).certificates, []);
  await assert.rejects(world.operator().renewCertificate({ hostname: HOST }), {
    code: status.NOT_FOUND,
    details: /no route needs/,
  });
});

async function applyRoute(world: World, hostnames: readonly string[]): Promise<void> {
  const route = ForageResource.fromPartial({
    name: "shop",
    spec: { $case: "route", value: { targetService: "web", hostnames: [...hostnames], tls: {} } },
  });
  const request = aRequest("a1", [aContainerService("web"), aService("web", "web"), route]);
  await world.forage().applyResources(request);
}

async function certificateOf(world: World, hostname: string): Promise<Certificate | undefined> {
  return (await world.operator().listCertificates({ hostname })).certificates[0];
}

async function inState(world: World, hostname: string, state: string): Promise<Certificate> {
  let found: Certificate | undefined;
  await until(`${hostname} is ${state}`, async () => {
    found = await certificateOf(world, hostname);
    return found?.state === state;
  });
  if (found === undefined) throw new Error("unreachable");
  return found;
}

async function conditionOf(world: World) {
  const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
  const route = resources.find(({ kind }) => kind === "route")?.route;
  return route?.conditions.find(({ type }) => type === "CertificateReady");
}
