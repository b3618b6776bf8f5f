import assert from "node:assert/strict";
import { test } from "node:test";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const RECREATE = { type: "Recreate" };

async function apply(world: World, image: string, overrides: object = {}): Promise<string> {
  const spec = { container: { name: "main", image }, updateStrategy: RECREATE, ...overrides };
  const { rolloutId } = await world
    .forage()
    .applyResources(aRequest(`to ${image}`, [aContainerService("web", spec)]));
  return rolloutId;
}

async function messageOf(world: World, rolloutId: string): Promise<string> {
  const { resources } = await world.operator().getRollout({ by: { $case: "rolloutId", value: rolloutId } });
  return resources.map(({ message }) => message).join("\n");
}

const stopping = (agent: HollowAgent): number =>
  [...agent.assignments.values()].filter((pod) => pod.stopping).length;

test(
  "stops no pod with Recreate until the node has the new image, and reports the wait",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world);
    await watchToEnd(world, await apply(world, "app:v1"));
    agent.pull = () => ({ failure: "ImagePullBackOff", message: "registry.test: connection refused" });
    const rolloutId = await apply(world, "app:v2");
    await until("the node was asked", () => agent.prefetches.length === 1);
    assert.equal(agent.prefetches[0]?.image, "app:v2");
    // Other nodes may already send the image, although no pod of this node uses it yet.
    const fetch = (of: string) =>
      collected(
        agent.client.fetchImage({
          ...{ image: "docker.io/library/app:v2", namespace: of, tagSources: ["n2"] },
        }),
      );
    await assert.rejects(fetch(agent.prefetches[0]?.namespace ?? ""), /no connected node of images.tagsFrom/);
    await assert.rejects(fetch("other"), /no pod of the namespace other/);
    const why =
      /older pods stay until 1 node has the image; node n1: ImagePullBackOff: app:v2: registry\.test: connection refused/;
    await until("the rollout says why", async () => why.test(await messageOf(world, rolloutId)));
    assert.equal(stopping(agent), 0);

    agent.pull = () => ({ present: true });
    agent.reportPulls();
    const lines = await watchToEnd(world, rolloutId);
    assert.match(lines.at(-1) ?? "", /SUCCEEDED/);
    await until("no prefetches are requested any more", () => agent.prefetches.length === 0);
  },
);

test("rolls back before any pod has stopped if the image does not exist", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await watchToEnd(world, await apply(world, "app:v1"));
  const before = [...agent.assignments.keys()];
  agent.pull = () => ({ failure: "ErrImageNotFound", message: "no such image" });
  const lines = await watchToEnd(world, await apply(world, "app:bad"));
  assert.match(lines.at(-1) ?? "", /ROLLED_BACK .*node n1: ErrImageNotFound: app:bad: no such image/);
  assert.deepEqual([...agent.assignments.keys()], before);
  assert.equal(stopping(agent), 0);
});

test("prefetches nothing with a surge, because the new pod pulls the image first", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  agent.pull = () => assert.fail("asked");
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: "1", maxUnavailable: "0" } };
  await watchToEnd(world, await apply(world, "app:v1", { updateStrategy }));
  const lines = await watchToEnd(world, await apply(world, "app:v2", { updateStrategy }));
  assert.match(lines.at(-1) ?? "", /SUCCEEDED/);
  assert.deepEqual(agent.prefetches, []);
});
