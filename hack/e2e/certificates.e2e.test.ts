import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ensureEnvoy } from "../lib/envoy.ts";
import { type Pebble, startPebble } from "../lib/pebble.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { webManifest } from "../system/manifests.ts";
import { waitForReadyPods } from "../system/pods.ts";
import { freeAddresses, type System, startSystem, waitForReady } from "../system/system.ts";
import { plainGet, SteadyClient, secureGet } from "../system/tls-client.ts";

const LIMIT = { timeout: 240_000 };
const HOSTNAME = "shop.example.test";
const LOST = "lost.example.test";

interface CertificateJson {
  readonly hostname: string;
  readonly state: string;
  readonly message?: string;
  readonly chainPem?: string;
}

interface RouteJson {
  readonly name: string;
  readonly kind: string;
  readonly route?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status?: boolean;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

describe("certificates of an authority, by ACME through a real gateway", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;
  let pebble: Pebble;
  let httpPort = 0;
  let httpsPort = 0;

  before(async () => {
    const envoy = await ensureEnvoy();
    host = await startTestHost();
    const ports = (await freeAddresses(2)).map((address) => Number(address.split(":")[1]));
    [httpPort = 0, httpsPort = 0] = ports;
    pebble = await startPebble({ httpPort });
    // No server answers at this address.
    await pebble.resolve(LOST, "127.0.0.9");
    const { directory, caFile } = pebble;
    system = await startSystem(host, {
      coordinator: {
        certificates: {
          issuer: "acme",
          acme: { directory, caFile, email: "ops@example.com", termsAgreed: true },
        },
      },
      agent: {
        gateway: { envoy, address: "127.0.0.1", httpPort, httpsPort },
      },
    });
    const labelled = await system.forage(["node", "label", "n1", "forage.dev/gateway=default"]);
    assert.equal(labelled.exitCode, 0, labelled.stderr);
    const applied = await system.forage(
      ["apply", "--detach", "-f", "-"],
      webManifest({ image: host.image, replicas: 1 }),
    );
    assert.equal(applied.exitCode, 0, applied.stderr);
    await waitForReadyPods(system, 1);
  }, LIMIT);
  after(async () => {
    await host?.close();
    await pebble?.close();
  }, LIMIT);

  test("a route with only tls set serves HTTPS with the authority's certificate", LIMIT, async () => {
    await applyRoute("shop", HOSTNAME);
    await certificate(HOSTNAME, ({ state }) => state === "ready");
    const answer = await served();
    assert.deepEqual([answer.status, answer.body.trim()], [200, "hello"]);
    // The listener of plain requests may receive the route later than that of encrypted requests.
    const plain = await waitFor(
      async () => {
        const answer = await plainGet(HOSTNAME, httpPort);
        return answer.status !== 503 && answer;
      },
      { what: "plain requests are answered", limitMs: 90_000 },
    );
    assert.equal(plain.status, 308);
    assert.match(plain.location, /^https:\/\/shop\.example\.test/);
    const condition = await conditionOf("shop");
    assert.deepEqual([condition?.status, condition?.message ?? ""], [true, ""]);
  });

  test("another certificate replaces it without losing a connection or a request", LIMIT, async () => {
    const before = await served();
    const client = await SteadyClient.start({ hostname: HOSTNAME, port: httpsPort, ca: pebble.root });
    try {
      await client.answered(5);
      const { exitCode, stderr } = await system.forage(["certificate", "renew", HOSTNAME]);
      assert.equal(exitCode, 0, stderr);
      await waitFor(async () => (await served()).serial !== before.serial, {
        what: "the gateway shows the other certificate",
        limitMs: 90_000,
        everyMs: 100,
      });
      await client.answered(5);
    } finally {
      client.stop();
    }
    assert.deepEqual(client.failures, []);
    assert.equal(client.serial, before.serial, "the connection that was open is the one from before");
  });

  test("a certificate survives a kill -9 of the coordinator without a new order", LIMIT, async () => {
    const before = await served();
    const orders = ordersOf(pebble);
    await system.coordinator.kill();
    assert.equal((await served()).serial, before.serial, "the gateway needs no coordinator");
    system.coordinator.start();
    await waitForReady(system.http, system.coordinator);
    await certificate(HOSTNAME, ({ state }) => state === "ready");
    await applyRoute("second", "second.example.test");
    await certificate("second.example.test", ({ state }) => state === "ready");
    assert.equal((await served()).serial, before.serial);
    assert.equal(ordersOf(pebble), orders + 1);
  });

  test(
    "a hostname that the authority can't reach is reported on its route, and others continue",
    LIMIT,
    async () => {
      await applyRoute("lost", LOST);
      const { message } = await certificate(LOST, ({ state }) => state === "failed");
      assert.match(message ?? "", /connection.*refused.*\(tried again at/i);
      const condition = await waitFor(
        async () => {
          const found = await conditionOf("lost");
          return found?.reason === "IssueFailed" ? found : undefined;
        },
        { what: "the route says so", limitMs: 90_000, everyMs: 200 },
      );
      assert.equal(condition.status ?? false, false);
      assert.match(condition.message ?? "", /lost\.example\.test: .*refused/i);
      // Events are written in the background, after the state that they report.
      await waitFor(
        async () => {
          const events = await system.ask<{ reason: string }[]>(["events", "--for", `certificate/${LOST}`]);
          return events.some(({ reason }) => reason === "CertificateFailed");
        },
        { what: "an event reports the failure", limitMs: 90_000, everyMs: 200 },
      );
      assert.equal((await served()).status, 200);
    },
  );

  async function applyRoute(name: string, host: string): Promise<void> {
    const resources = [{ name, route: { targetService: "web", hostnames: [host], tls: {} } }];
    const manifest = JSON.stringify({ namespace: "e2e", resources });
    const { exitCode, stderr } = await system.forage(["apply", "--detach", "-f", "-"], manifest);
    assert.equal(exitCode, 0, stderr);
  }

  function certificate(name: string, holds: (found: CertificateJson) => boolean): Promise<CertificateJson> {
    let all: CertificateJson[] = [];
    return waitFor(
      async () => {
        all = await system.ask<CertificateJson[]>(["certificate", "ls"]);
        return all.find((found) => found.hostname === name && holds(found));
      },
      { what: `${name} is as expected`, limitMs: 150_000, everyMs: 200, explain: () => JSON.stringify(all) },
    );
  }

  /** Resolves once the gateway shows a certificate for the hostname. */
  function served() {
    const get = () =>
      secureGet({ hostname: HOSTNAME, port: httpsPort, ca: pebble.root }).catch(() => undefined);
    return waitFor(get, { what: `${HOSTNAME} answers by HTTPS`, limitMs: 90_000, everyMs: 100 });
  }

  async function conditionOf(name: string) {
    const routes = await system.ask<RouteJson[]>(["get", "routes", "-n", "e2e"]);
    const conditions = routes.find((route) => route.name === name)?.route?.conditions ?? [];
    return conditions.find(({ type }) => type === "CertificateReady");
  }
});

function ordersOf({ readLog }: Pebble): number {
  return readLog().match(/Added order/g)?.length ?? 0;
}
