import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const IN_SHOP = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };

test("refuses every call without a token, with the reason", LIMIT, async (t) => {
  const world = await startWorld(t);
  for (const call of [
    world.forage("").applyResources(aRequest("a1", [aContainerService("web")])),
    world.forage("").deleteResources({ namespace: "shop", labels: { a: "b" } }),
    collected(world.forage("").watchRollout({ rolloutId: "r-1" })),
    world.operator("").listPods(IN_SHOP),
    world.operator("").createApiToken({
      role: "admin",
      namespaces: [],
      ttlSeconds: 0n,
      neverExpires: false,
      description: "",
    }),
    collected(
      world.destination("").get({ scheme: "", path: "web.shop.svc.cluster.local", contextToken: "" }),
    ),
  ]) {
    await assert.rejects(call, { code: status.UNAUTHENTICATED, details: /authorization: Bearer/ });
  }
});

test("refuses a token that is wrong, revoked or of another kind", LIMIT, async (t) => {
  const world = await startWorld(t);
  const real = await world.token("admin");
  await until("the token is known", () => works(world.operator(real).listPods(IN_SHOP)));
  const wrong = `${real.slice(0, -2)}${real.endsWith("AA") ? "BB" : "AA"}`;
  for (const token of [wrong, "flt_000000000000_", "x", `flt_${"0".repeat(12)}_${"A".repeat(43)}`]) {
    await assert.rejects(world.operator(token).listPods(IN_SHOP), { code: status.UNAUTHENTICATED });
  }
  const id = real.split("_")[1];
  await world.store.txn([], [{ type: "delete", key: `api-tokens/${id}` }]);
  await until("the token is revoked", async () => !(await works(world.operator(real).listPods(IN_SHOP))));
});

test("refuses an expired token, with the reason", LIMIT, async (t) => {
  const world = await startWorld(t);
  const asked = {
    role: "viewer",
    namespaces: ["shop"],
    ttlSeconds: 60n,
    neverExpires: false,
    description: "short",
  };
  const { token } = await world.operator().createApiToken(asked);
  assert.deepEqual((await world.operator(token).listPods(IN_SHOP)).pods, []);
  world.clock.skip(60_000);
  await assert.rejects(world.operator(token).listPods(IN_SHOP), {
    code: status.UNAUTHENTICATED,
    details: "the token has expired",
  });
});

test("limits a token to its own namespace", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await world.token("editor", ["shop"]);
  await until("the token is known", () => works(world.operator(token).listPods(IN_SHOP)));
  const { rolloutId } = await world.forage(token).applyResources(aRequest("a1", [aContainerService("web")]));
  const elsewhere = { ...aRequest("a2", [aContainerService("web")]), namespace: "other" };
  const other = await world.forage().applyResources(elsewhere);
  const denied = { code: status.PERMISSION_DENIED };
  for (const call of [
    world.forage(token).applyResources(elsewhere),
    world.forage(token).deleteResources({ namespace: "other", labels: { a: "b" } }),
    collected(world.forage(token).watchRollout({ rolloutId: other.rolloutId })),
    world.operator(token).listPods({ ...IN_SHOP, namespace: "other" }),
    world.operator(token).listPods({ ...IN_SHOP, namespace: "" }),
    world.operator(token).listResources({ namespace: "", labels: {} }),
    world.operator(token).listNodes({}),
    world.operator(token).getRollout({ by: { $case: "rolloutId", value: other.rolloutId } }),
    world.operator(token).delete({ namespace: "other", resources: [], labels: {}, all: true }),
    world
      .operator(token)
      .createJoinToken({ ttlSeconds: 0, nodeName: "", reusable: false, labels: {}, taints: [] }),
    collected(
      world.operator(token).logs({ namespace: "other", pod: "x", container: "", options: undefined }),
    ),
    collected(
      world.destination(token).get({ scheme: "", path: "a.other.svc.cluster.local", contextToken: "" }),
    ),
  ]) {
    await assert.rejects(call, denied);
  }
  const rollout = await world.operator(token).getRollout({ by: { $case: "rolloutId", value: rolloutId } });
  assert.equal(rollout.namespace, "shop");
});

test("lets a viewer read and change nothing", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const viewer = await world.token("viewer");
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await watchToEnd(world, rolloutId);
  assert.equal((await world.operator(viewer).listPods(IN_SHOP)).pods.length, 2);
  assert.equal((await collected(world.forage(viewer).watchRollout({ rolloutId }))).length, 1);
  const denied = { code: status.PERMISSION_DENIED };
  await assert.rejects(world.forage(viewer).applyResources(aRequest("a2", [])), denied);
  await assert.rejects(
    world.operator(viewer).delete({ namespace: "shop", resources: [], labels: {}, all: true }),
    denied,
  );
  const exec = world.operator(viewer).exec();
  exec.write({
    frame: { $case: "start", value: { namespace: "shop", pod: "x", container: "", options: undefined } },
  });
  await assert.rejects(collected(exec), denied);
});

test("lets a reader of destinations read only endpoints", LIMIT, async (t) => {
  const world = await startWorld(t);
  const reader = await world.token("destination-reader");
  const stream = world
    .destination(reader)
    .get({ scheme: "", path: "web.shop.svc.cluster.local", contextToken: "" });
  for await (const update of stream) {
    assert.equal(update.update?.$case, "noEndpoints");
    break;
  }
  await assert.rejects(world.operator(reader).listPods(IN_SHOP), { code: status.PERMISSION_DENIED });
});

test("refuses nodes and clients at each other's services", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await assert.rejects(agent.forage().applyResources(aRequest("a1", [aContainerService("web")])), {
    code: status.PERMISSION_DENIED,
    details: /not for nodes/,
  });
  for (const call of [world.agents().connect(), world.agents().serve()]) {
    call.on("error", () => {});
    await assert.rejects(collected(call), {
      code: status.PERMISSION_DENIED,
      details: /for nodes with a certificate/,
    });
  }
  await assert.rejects(world.agents().renew({ csr: Buffer.alloc(0) }), { code: status.PERMISSION_DENIED });
  await assert.rejects(world.agents("").renew({ csr: Buffer.alloc(0) }), { code: status.UNAUTHENTICATED });
});

test("answers health checks for everyone, and health watches only with a token", LIMIT, async (t) => {
  const world = await startWorld(t);
  for (const service of ["", "forest.v1.ForageService", "io.linkerd.proxy.destination.Destination"])
    assert.deepEqual(await world.health("").check({ service }), { status: 1 }, service);
  await assert.rejects(world.health("").check({ service: "none" }), {
    code: status.NOT_FOUND,
    details: /this port does not serve "none"; it serves forest\.v1\.ForageService/,
  });
  await assert.rejects(collected(world.health("").watch({ service: "" })), { code: status.UNAUTHENTICATED });
  for await (const state of world.health().watch({ service: "" })) {
    assert.deepEqual(state, { status: 1 });
    break;
  }
  for await (const state of world.health().watch({ service: "none" })) {
    assert.deepEqual(state, { status: 3 });
    break;
  }
});

async function works(call: Promise<unknown>): Promise<boolean> {
  return call.then(
    () => true,
    () => false,
  );
}
