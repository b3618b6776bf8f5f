import assert from "node:assert/strict";
import { test } from "node:test";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { startWorld } from "./support/world.ts";

test("spreads replicas over nodes, and keeps the rest spread when it scales down", {
  timeout: 120_000,
}, async (t) => {
  const world = await startWorld(t);
  const agents = await Promise.all(["n1", "n2", "n3"].map((name) => HollowAgent.start(world, { name })));
  const apply = async (replicas: number): Promise<number[]> => {
    const request = aRequest(`a${replicas}`, [aContainerService("web", { scaling: { replicas } })]);
    await watchToEnd(world, (await world.forage().applyResources(request)).rolloutId);
    const running = (agent: HollowAgent) =>
      [...agent.assignments.values()].filter((pod) => !pod.stopping).length;
    while (agents.reduce((sum, agent) => sum + running(agent), 0) !== replicas)
      await new Promise(setImmediate);
    return agents.map(running);
  };
  assert.deepEqual(await apply(9), [3, 3, 3]);
  assert.deepEqual(await apply(3), [1, 1, 1]);
  assert.deepEqual(await apply(0), [0, 0, 0]);
});
