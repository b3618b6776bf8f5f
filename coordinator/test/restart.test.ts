import assert from "node:assert/strict";
import { test } from "node:test";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, aService, watchToEnd } from "./support/requests.ts";
import { startWorld } from "./support/world.ts";

test("knows the endpoints after a restart before any node has reconnected", {
  timeout: 120_000,
}, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const bundle = [aContainerService("web"), aService("web", "web")];
  await watchToEnd(world, (await world.forage().applyResources(aRequest("a1", bundle))).rolloutId);
  agent.close();
  await world.restart();
  const { endpoints } = await world.operator().listEndpoints({ namespace: "shop", service: "web" });
  assert.equal(endpoints.length, 2);
});
