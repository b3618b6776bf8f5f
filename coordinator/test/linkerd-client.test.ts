import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { HollowAgent } from "./support/hollow-agent.ts";
import { type LinkerdRequest, LinkerdStream, linkerdClient } from "./support/linkerd-client.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { virtualIpOf } from "./support/virtual-ip.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const FQN = "web.shop.svc.cluster.local";
let program = "";

before(
  async () => {
    program = await linkerdClient();
  },
  { timeout: 20 * 60_000 },
);

for (const listener of ["TLS", "plain text"] as const) {
  test(
    `lets Linkerd's own bindings follow endpoints from none to the end over ${listener}`,
    LIMIT,
    async (t) => {
      const world = await startWorld(t);
      const ask = await asking(t, world, listener);
      const found = ask({ method: "get", path: `${FQN}:80`, contextToken: "{garbage" });
      assert.deepEqual((await found.next()).noEndpoints, {}, "at once: there is no such service");
      await apply(world, { replicas: 0 });
      assert.deepEqual((await found.next()).noEndpoints, { exists: true });
      const agent = await HollowAgent.start(world);
      await apply(world, { replicas: 1, annotations: { "forage.dev/protocol": "http2" } });
      const { add } = await found.next();
      const [pod] = agent.assignments.values();
      assert.deepEqual(add?.metricLabels, { namespace: "shop", service: "web" });
      const [endpoint, ...others] = add?.addrs ?? [];
      assert.ok(pod && endpoint && others.length === 0);
      assert.deepEqual(
        [endpoint.addr.ip.ipv4, endpoint.weight, endpoint.protocolHint],
        [0x7f000001, 10_000, { h2: {} }],
      );
      assert.equal(endpoint.metricLabels.pod, pod.name);
      await apply(world, { replicas: 0, annotations: { "forage.dev/protocol": "http2" } });
      assert.deepEqual((await found.next()).noEndpoints, { exists: true });
      const ended = found.code();
      await world.restart();
      assert.equal(await ended, "OK");
    },
  );

  test(`lets Linkerd's own bindings read profiles like a proxy over ${listener}`, LIMIT, async (t) => {
    const world = await startWorld(t);
    const ask = await asking(t, world, listener);
    await HollowAgent.start(world);
    await apply(world, { replicas: 1 });
    const clusterIp = await virtualIpOf(world, "web");
    const byIp = ask({ method: "getProfile", path: `${clusterIp}:80` });
    const profile = await byIp.next();
    assert.equal(profile.fullyQualifiedName, FQN);
    assert.deepEqual(profile.retryBudget, { retryRatio: 0.2, minRetriesPerSecond: 10, ttl: "10s" });
    const [to] = profile.dstOverrides ?? [];
    assert.deepEqual([to?.authority, to && to.weight > 0], [`${FQN}:80`, true]);
    // Continues like a proxy, with the service in the profile.
    const found = ask({ method: "get", path: to?.authority ?? "" });
    const endpoint = (await found.next()).add?.addrs[0];
    assert.ok(endpoint);
    const direct = ask({ method: "getProfile", path: `127.0.0.1:${endpoint.addr.port}` });
    assert.deepEqual((await direct.next()).endpoint?.addr, endpoint.addr);
    const unknown = ask({ method: "getProfile", path: "192.0.2.77:81" });
    assert.deepEqual(Object.keys(await unknown.next()), ["retryBudget"]);
    await apply(world, { replicas: 1, annotations: { "config.linkerd.io/opaque-ports": "80" } });
    assert.equal((await byIp.next()).opaqueProtocol, true);
  });

  test(`lets Linkerd's own bindings read routes and split traffic over ${listener}`, LIMIT, async (t) => {
    const world = await startWorld(t);
    const ask = await asking(t, world, listener);
    const service = (name: string) => {
      const value = { target: name, ports: [{ name: "http", port: 80 }] };
      return ForageResource.fromPartial({ name, spec: { $case: "service", value } });
    };
    const rules = [
      { matches: [{ path: { type: "Exact", value: "/cart" }, method: "GET" }], timeout: { seconds: 3n } },
      {
        backends: [
          { service: "v1", port: 80, weight: 90 },
          { service: "v2", port: 80, weight: 10 },
        ],
      },
    ];
    const value = { targetService: "web", hostnames: ["web.example.com"], rules };
    const route = ForageResource.fromPartial({ name: "canary", spec: { $case: "route", value } });
    const resources = [service("web"), service("v1"), service("v2"), route];
    await world.forage().applyResources(aRequest("a-1", resources));
    const profiles = ask({ method: "getProfile", path: `${FQN}:80` });
    let profile = await profiles.next();
    while (!profile.routes?.length) profile = await profiles.next();
    assert.deepEqual(profile.routes[0], {
      condition: { all: { matches: [{ path: { regex: "/cart" } }, { method: { registered: "GET" } }] } },
      responseClasses: [{ condition: { status: { min: 500, max: 599 } }, isFailure: true }],
      metricsLabels: { route: "canary" },
      timeout: "3s",
    });
    assert.deepEqual(
      profile.dstOverrides?.map(({ authority, weight }) => `${authority} ${weight}`),
      ["v1.shop.svc.cluster.local:80 90", "v2.shop.svc.cluster.local:80 10"],
    );
    const ref = { group: "forest.v1", kind: "Route", name: "canary", namespace: "shop" };
    assert.deepEqual(profile.profileRef, { resource: ref });
  });

  test(`sends Linkerd's own bindings the reason for a refusal over ${listener}`, LIMIT, async (t) => {
    const world = await startWorld(t);
    const ask = await asking(t, world, listener);
    for (const method of ["get", "getProfile"] as const) {
      for (const path of ["", "web:80", `${FQN}:0`, "web.shop.svc.example.com:80"])
        assert.equal(await ask({ method, path }).code(), "InvalidArgument", `${method} ${path}`);
    }
    assert.equal(await ask({ method: "get", path: "10.0.0.1:80" }).code(), "InvalidArgument");
  });
}

async function asking(t: TestContext, world: World, listener: "TLS" | "plain text") {
  const dir = mkdtempSync(join(tmpdir(), "forage-linkerd-"));
  const caFile = join(dir, "ca.pem");
  writeFileSync(caFile, world.caPem);
  const bearer = await world.token("destination-reader", ["shop"]);
  const streams: LinkerdStream[] = [];
  t.after(() => {
    for (const stream of streams) stream.close();
    rmSync(dir, { recursive: true });
  });
  return (request: Pick<LinkerdRequest, "method" | "path" | "contextToken">): LinkerdStream => {
    const { destination } = world.coordinator;
    const where =
      listener === "TLS"
        ? { address: world.address, tls: { caFile, bearer } }
        : { address: `127.0.0.1:${destination?.port}` };
    const stream = new LinkerdStream({ ...request, ...where, program });
    streams.push(stream);
    return stream;
  };
}

interface Applied {
  readonly replicas: number;
  readonly annotations?: Record<string, string>;
}

/** Applies pods of `web` and a service in front of them, and waits until they run. */
async function apply(world: World, { replicas, annotations = {} }: Applied): Promise<void> {
  const value = { target: "web", ports: [{ name: "http", port: 80, targetPort: 8080 }], annotations };
  const service = ForageResource.fromPartial({ name: "web", spec: { $case: "service", value } });
  const web = aContainerService("web", { scaling: { replicas } });
  const { rolloutId } = await world
    .forage()
    .applyResources(aRequest(`a-${world.store.revision}`, [service, web]));
  const lines = await watchToEnd(world, rolloutId);
  assert.doesNotMatch(lines.at(-1) ?? "", /FAILED/);
}
