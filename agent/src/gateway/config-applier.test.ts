import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { GatewayHost } from "@forage/proto/forage/agent/v1/agent";
import { ConfigApplier } from "./config-applier.ts";
import type { ConfigLoader, Outcome } from "./config-loader.ts";
import { EnvoyPaths } from "./envoy/envoy-paths.ts";
import type { GatewayView } from "./known-gateway.ts";
import { readRejectedHosts } from "./rejected-hosts.ts";
import type { GatewayFiles, RenderOptions } from "./render-gateway.ts";

test("stores rejected hosts for the next agent, and deletes the file when there are none", async (t) => {
  const { places, open, apply, loads } = start(t);
  const first = open();
  assert.deepEqual(await apply(first, "good"), []);
  assert.equal(existsSync(places.rejectedHosts), false);

  const problems = [{ hostname: "bad.example", message: "too long" }];
  assert.deepEqual(await apply(first, "good", "bad"), problems);
  const held = await readRejectedHosts(places.rejectedHosts);
  assert.deepEqual(
    held.map(({ host, reason, former }) => [host.hostname, reason, former]),
    [["bad.example", "too long", undefined]],
  );

  const next = open();
  await next.adopt();
  loads.length = 0;
  assert.deepEqual(await apply(next, "good", "bad"), problems);
  assert.ok(loads.length > 0 && loads.every((hosts) => !hosts.includes("bad.example")), "it isn't retried");

  assert.deepEqual(await apply(next, "good"), []);
  assert.deepEqual(await readRejectedHosts(places.rejectedHosts), []);
});

/** Starts an applier with a proxy that accepts every host except `bad.example`. */
function start(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), "forage-gateway-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const places = new EnvoyPaths(directory);
  const loads: string[] = [];
  const loader = {
    adopt: async () => {},
    load: async ({ routes }: GatewayFiles): Promise<Outcome> => {
      const { text } = routes.http;
      loads.push(text);
      return text.includes("bad.example")
        ? { type: "refused", subscription: "http", reason: "too long" }
        : { type: "applied" };
    },
  } as unknown as ConfigLoader;
  const render: RenderOptions = {
    ...{ places, node: "n1", address: "::", trustedHops: 0 },
    ...{ ports: { http: 80, https: 443 }, accessLog: "/logs/access.log" },
  };
  const backends = [{ namespace: "shop", service: "web", port: 80, weight: 1 }];
  const apply = (applier: ConfigApplier, ...names: readonly string[]) => {
    const hosts = names.map((name) =>
      GatewayHost.fromPartial({ hostname: `${name}.example`, rules: [{ backends }] }),
    );
    const view: GatewayView = {
      ...{ gateway: "default", certificates: new Map(), challenges: [], version: 1n },
      hosts: new Map(hosts.map((host) => [host.hostname, host])),
    };
    return applier.apply(view, new Map());
  };
  return { places, loads, apply, open: () => new ConfigApplier(loader, render) };
}
