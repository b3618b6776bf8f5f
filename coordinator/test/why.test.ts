import assert from "node:assert/strict";
import { test } from "node:test";
import type { WhyResponse } from "@forage/proto/forage/operator/v1/operator";
import { HollowAgent, waitingPod } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, aService } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };

test("explains an unschedulable pod by each node's reason, and what would help", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, { name: "small", cpu: "10m" });
  await HollowAgent.start(world, { name: "tiny", cpu: "5m" });
  await apply(world);
  const name = await firstPod(world);
  await until(
    "the cause names both nodes",
    async () => (await ask(world, "pod", name)).causes[0]?.details.length === 2,
  );
  const { healthy, summary, causes } = await ask(world, "pod", name);
  assert.equal(healthy, false);
  assert.match(summary, /^pod web-\S+ is not ready: no node fits: 0\/2 nodes/);
  assert.equal(causes[0]?.reason, "Unschedulable");
  assert.match(causes[0]?.details[0] ?? "", /^small: insufficient cpu/);
  assert.match(causes[0]?.details[1] ?? "", /^tiny: insufficient cpu/);
  assert.notEqual(causes[0]?.advice, "");
  await until("it is an event", async () => (await ask(world, "pod", name)).events.length > 0);
  const service = await ask(world, "container_service", "web");
  assert.match(service.causes[0]?.message ?? "", /^pods web-\S+, web-\S+: no node fits/);
  assert.match((await ask(world, "service", "web")).summary, /has no ready endpoints/);
});

test(
  "explains a crash by exit code, last lines and next attempt, and its effect on the workload",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const behaviour = (pod: Parameters<typeof waitingPod>[0]) =>
      waitingPod(pod, "CrashLoopBackOff", "starts again 10 s after its end", 1, 3);
    const agent = await HollowAgent.start(world, { behaviour });
    await apply(world);
    const name = await firstPod(world);
    await until(
      "it has crashed",
      async () => (await ask(world, "pod", name)).causes[0]?.reason === "CrashLoopBackOff",
    );
    const { causes } = await ask(world, "pod", name);
    assert.match(causes[0]?.message ?? "", /^container main exited with code 3 \(Error\)/);
    assert.deepEqual(causes[0]?.details, ["last words"]);
    assert.match(causes[0]?.advice ?? "", /forage logs .* --previous/);
    const byUid = await ask(world, "pod", [...agent.assignments.keys()][0]?.slice(0, 8) ?? "");
    assert.equal(byUid.causes[0]?.reason, "CrashLoopBackOff");
  },
);

test(
  "explains nodes and healthy objects, checks the permission, and reports unknown objects",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    await HollowAgent.start(world);
    await apply(world);
    await until("it is ready", async () => (await ask(world, "container_service", "web")).healthy);
    assert.match((await ask(world, "container_service", "web")).summary, /is healthy; 2\/2 ready/);
    assert.match((await ask(world, "service", "web")).summary, /2 ready endpoints/);
    assert.match(
      (await world.operator().why({ namespace: "", kind: "node", name: "n1" })).summary,
      /node n1 is ready/,
    );
    for (const [request, code] of [
      [{ namespace: "shop", kind: "pod", name: "nobody" }, 5],
      [{ namespace: "shop", kind: "service", name: "nobody" }, 5],
      [{ namespace: "", kind: "node", name: "nobody" }, 5],
      [{ namespace: "shop", kind: "node", name: "n1" }, 3],
      [{ namespace: "", kind: "pod", name: "web" }, 3],
      [{ namespace: "shop", kind: "pod", name: "" }, 3],
    ] as const)
      await assert.rejects(world.operator().why(request), { code }, JSON.stringify(request));
    const stranger = world.operator(await world.token("viewer", ["other"]));
    await assert.rejects(stranger.why({ namespace: "shop", kind: "service", name: "web" }), { code: 7 });
    await assert.rejects(stranger.why({ namespace: "", kind: "node", name: "n1" }), { code: 7 });
  },
);

async function apply(world: World): Promise<void> {
  const resources = [aContainerService("web"), aService("web", "web")];
  await world.forage().applyResources(aRequest("a1", resources));
}

async function firstPod(world: World): Promise<string> {
  const pods = async () => {
    const everyPod = { labels: {}, workload: "", node: "", name: "" };
    return (await world.operator().listPods({ ...everyPod, namespace: "shop" })).pods;
  };
  await until("there are pods", async () => (await pods()).length === 2);
  return (await pods())[0]?.name ?? "";
}

function ask(world: World, kind: string, name: string): Promise<WhyResponse> {
  return world.operator().why({ namespace: "shop", kind, name });
}
