import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { type Behaviour, HollowAgent, waitingPod } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const limit = { timeout: 60_000 };

/** Pods of the image do as told, all others run. */
function behaving(agent: () => HollowAgent, image: string, behaviour: Behaviour): Behaviour {
  return (pod) => (imageOf(pod) === image ? behaviour(pod) : agent().running(pod));
}

function imageOf(pod: PodAssignment): string {
  return pod.template?.container?.image ?? "";
}

function web(image: string, overrides: object = {}) {
  return aContainerService("web", { container: { name: "main", image }, ...overrides });
}

async function apply(world: World, applyId: string, image: string, overrides: object = {}): Promise<string> {
  const { rolloutId } = await world.forage().applyResources(aRequest(applyId, [web(image, overrides)]));
  return rolloutId;
}

/** A world in which app:v1 runs and app:bad crashes. */
async function start(world: World): Promise<HollowAgent> {
  const agent: HollowAgent = await HollowAgent.start(world, {
    behaviour: behaving(
      () => agent,
      "app:bad",
      (pod) => waitingPod(pod, "CrashLoopBackOff", "restarting in 10 s", 2, 3),
    ),
  });
  await watchToEnd(world, await apply(world, "a1", "app:v1"));
  return agent;
}

async function imagesOf(world: World): Promise<string[]> {
  const all = { namespace: "shop", labels: {}, workload: "web", node: "", name: "" };
  const { pods } = await world.operator().listPods(all);
  const revisions = await world
    .operator()
    .listRevisions({ namespace: "shop", kind: "container_service", name: "web" });
  const imageByHash = new Map(
    revisions.revisions.map(({ templateHash, spec }) => {
      const value = spec?.spec?.$case === "containerService" ? spec.spec.value : undefined;
      return [templateHash, value?.container?.image ?? ""];
    }),
  );
  return pods.filter((pod) => !pod.stopping).map((pod) => imageByHash.get(pod.templateHash) ?? "?");
}

test("a version that crashes is rolled back, with its exit code and last lines", limit, async (t) => {
  const world = await startWorld(t);
  const agent = await start(world);
  const lines = await watchToEnd(world, await apply(world, "a2", "app:bad"));
  assert.match(lines.at(-1) ?? "", /ROLLED_BACK rolled back to revision 1: .*exited with code 3.*last words/);
  assert.ok(
    lines.some((line) => line.includes("IN_PROGRESS rolling back to revision 1")),
    lines.join("\n"),
  );
  assert.deepEqual(await imagesOf(world), ["app:v1", "app:v1"]);
  await until("the failed pods are gone", () => agent.assignments.size === 2);
});
