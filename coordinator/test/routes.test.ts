import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DeleteObjectRequest,
  DeleteRequest,
  PutObjectRequest,
  type Resource,
  UpdateNodeRequest,
  WhyRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { aCertificate } from "./support/gateway/a-certificate.ts";
import { some } from "./support/gateway/a-route.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, aRoute, aService, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const GATEWAY_LABEL = "forage.dev/gateway";

test(
  "sends a route to the gateway's node, and marks it as programmed once it is applied there",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const [gateway, other] = [
      await HollowAgent.start(world, { name: "g1", tokenLabels: { [GATEWAY_LABEL]: "" } }),
      await HollowAgent.start(world, { name: "n1" }),
    ];
    gateway.appliesRoutes = false;
    const lines = await apply(
      world,
      "a1",
      aContainerService("web"),
      aService("web", "web"),
      aRoute("front", { hostnames: ["shop.example"] }),
    );
    assert.ok(lines.includes("route/front SUCCEEDED accepted"), lines.join("\n"));
    await until("it has the route", () => gateway.gateway.hosts.has("shop.example"));
    assert.equal(gateway.gateway.hosts.get("shop.example")?.rules[0]?.backends[0]?.service, "web");
    assert.deepEqual(
      (await why(world, "front")).causes.map(({ reason }) => reason),
      ["Pending"],
    );
    gateway.reportGateway();
    await until("it is programmed", async () => (await why(world, "front")).healthy);
    assert.equal((await why(world, "front")).summary, "route/front is applied on g1");
    const { route } = await resource(world, "front");
    assert.deepEqual(route?.gateways, [{ node: "g1", ready: true, inForce: true, message: "" }]);
    const { nodes } = await world.operator().listNodes({});
    assert.deepEqual(
      nodes.map(({ name, gateway: state }) => [name, state?.name, state?.upToDate, state?.proxyVersion]),
      [
        ["g1", "default", true, "1.40.0"],
        ["n1", undefined, undefined, undefined],
      ],
    );
    await until("the other knows that it is none", () => other.gateway.gateway === "");
    await world.operator().delete(
      DeleteRequest.fromPartial({
        namespace: "shop",
        resources: [{ kind: "route", name: "front" }],
      }),
    );
    await until("it is gone", () => gateway.gateway.hosts.size === 0);
  },
);

test("makes a connected node a gateway by its label, and ends this without the label", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await apply(world, "a1", aContainerService("web"), aService("web", "web"), aRoute("front"));
  assert.match((await why(world, "front")).summary, /no node is gateway "default"/);
  await until("it knows that it is none", () => agent.gateway.gateway === "");
  await label(world, { setLabels: { [GATEWAY_LABEL]: "true" } });
  await until(
    "it has the route",
    () => agent.gateway.gateway === "default" && agent.gateway.hosts.size === 1,
  );
  await until("all is well", async () => (await why(world, "front")).healthy);
  await label(world, { removeLabels: [GATEWAY_LABEL] });
  await until("it is none any more", () => agent.gateway.gateway === "" && agent.gateway.hosts.size === 0);
  await label(world, { setLabels: { [GATEWAY_LABEL]: "" } });
  await until("it is one again", () => agent.gateway.hosts.size === 1);
  await world.restart();
  const again = agent.again();
  await until("and after a restart of the coordinator", () => again.gateway.hosts.size === 1);
  assert.ok(again.gateway.version > agent.gateway.version, "versions never go back");
  await until("all is healthy again", async () => (await why(world, "front")).healthy);
});

test(
  "accepts a missing target of a route, and records an event when it is created or removed",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    await HollowAgent.start(world, { tokenLabels: { [GATEWAY_LABEL]: "" } });
    const lines = await apply(world, "a1", aRoute("front"));
    assert.ok(
      lines.some((line) => /^route\/front SUCCEEDED BackendNotFound: .*no service "web"/.test(line)),
      lines.join("\n"),
    );
    assert.equal((await why(world, "front")).causes[0]?.reason, "BackendNotFound");
    await apply(world, "a2", aContainerService("web"), aService("web", "web"));
    await until("all is well", async () => (await why(world, "front")).healthy);
    const both = await apply(world, "a3", aRoute("second"));
    assert.ok(
      both.some((line) => line.startsWith("route/second SUCCEEDED Conflicted")),
      both.join("\n"),
    );
    const reasons = ["BackendNotFound", "ResolvedRefs", "MatchShadowed"];
    const recorded = async () =>
      (
        await world.operator().listEvents({ namespace: "shop", filter: undefined, after: 0n, limit: 0 })
      ).events
        .filter(({ kind }) => kind === "route")
        .map(({ reason }) => reason);
    await until("events report the problems", async () => {
      const found = await recorded();
      return reasons.every((reason) => found.includes(reason));
    });
  },
);

test(
  "sends a secret's certificate only to the gateway, and refuses to delete the secret",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const gateway = await HollowAgent.start(world, { name: "g1", tokenLabels: { [GATEWAY_LABEL]: "" } });
    const other = await HollowAgent.start(world, { name: "n1" });
    const inlineRoute = { hostnames: ["shop.example"], rules: [], tls: { certificateRef: "web" } };
    const value = { target: "web", ports: [{ port: 80, targetPort: 8080 }], inlineRoute };
    const service = ForageResource.fromPartial({ name: "web", spec: { $case: "service", value } } as object);
    const lines = await apply(world, "a1", aContainerService("web"), service);
    assert.ok(
      lines.some((line) => /^service\/web SUCCEEDED .*; its route: CertificateNotFound/.test(line)),
      lines.join("\n"),
    );
    const content = await aCertificate("shop.example");
    const data = Object.fromEntries(Object.entries(content).map(([key, bytes]) => [key, bytes]));
    await world.operator().putObject(
      PutObjectRequest.fromPartial({
        namespace: "shop",
        object: { namespace: "shop", name: "web", spec: { $case: "secret", value: { data } } },
      } as object),
    );
    await until("it has the certificate", () => gateway.gateway.certificates.size === 1);
    assert.equal(gateway.gateway.hosts.get("shop.example")?.certificate, "secret/shop/web");
    assert.equal(other.gateway.certificates.size, 0);
    await until("all is well", async () => {
      const { route } = await resource(world, "web");
      return some(route).conditions.every(({ status }) => status);
    });
    const { route } = await resource(world, "web");
    assert.ok(
      some(route?.hostnames[0]?.certificateExpiresAt).seconds > BigInt(Math.floor(Date.now() / 1000)),
    );
    const everything = JSON.stringify(await resource(world, "web"), (_, it) =>
      typeof it === "bigint" ? String(it) : it,
    );
    assert.ok(!everything.includes(content["tls.key"].toString().split("\n")[1] ?? "?"));
    const refused = world
      .operator()
      .deleteObject(DeleteObjectRequest.fromPartial({ namespace: "shop", kind: "secret", name: "web" }));
    await assert.rejects(refused, /service\/web/);
  },
);

async function apply(world: World, id: string, ...resources: ForageResource[]): Promise<string[]> {
  const { rolloutId } = await world.forage().applyResources(aRequest(id, resources));
  return watchToEnd(world, rolloutId);
}

function why(world: World, name: string) {
  return world.operator().why(WhyRequest.fromPartial({ namespace: "shop", kind: "route", name }));
}

async function label(
  world: World,
  change: Parameters<typeof UpdateNodeRequest.fromPartial>[0],
): Promise<void> {
  await world.operator().updateNode(UpdateNodeRequest.fromPartial({ name: "n1", ...change }));
}

async function resource(world: World, name: string): Promise<Resource> {
  const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
  return some(resources.find((it) => it.name === name && it.route !== undefined));
}
