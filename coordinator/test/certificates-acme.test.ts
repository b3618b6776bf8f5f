import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { type TestContext, test } from "node:test";
import { splitCertificates } from "@forage/identity/pem";
import { type Pebble, type PebbleOptions, startPebble } from "../../hack/lib/pebble.ts";
import type { Config } from "../src/config.ts";
import {
  type CertificateWorld,
  type GatewayStandIn,
  startCertificateWorld,
  startGatewayStandIn,
} from "./support/certificate-world.ts";

const host = "app.example.test";

test("a hostname gets a certificate that leads to the authority's root", async (t) => {
  const { pebble, world } = await start(t);
  world.controller.want(new Set([host]));
  const { chainPem, keyPem } = await world.issued(host);
  const [leaf, ...issuers] = splitCertificates(chainPem).map((pem) => new X509Certificate(pem));
  assert.ok(leaf?.checkHost(host));
  assert.ok(leaf?.checkPrivateKey(createPrivateKey(keyPem)));
  const root = new X509Certificate(pebble.root);
  const last = issuers.at(-1) ?? leaf;
  assert.ok(last?.checkIssued(root) && last.verify(root.publicKey));
  assert.deepEqual(
    world.events.map(({ reason, name }) => [reason, name]),
    [["CertificateIssued", host]],
  );
  assert.deepEqual(world.controller.challenges(), [], "what was asked for once is taken down");
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

function settingsOf({ directory, caFile }: Pick<Pebble, "directory" | "caFile">): Config["certificates"] {
  return { issuer: "acme", acme: { directory, caFile, email: "ops@example.com", termsAgreed: true } };
}
