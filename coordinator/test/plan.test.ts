import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { PlannedResource, PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aJob, aRequest, aService, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const LABELS = { app: "shop" };

test("plans a first deployment with the pods' nodes, and changes nothing", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, { name: "n1" });
  await HollowAgent.start(world, { name: "n2" });
  await nodesReady(world, 2);
  const before = await everything(world);
  const plan = await planOf(world, [aContainerService("web"), aService("web", "web")]);
  assert.equal(plan.changes, true);
  assert.deepEqual(
    plan.resources.map(({ kind, action }) => `${kind} ${action}`),
    ["container_service create", "service create"],
  );
  const [web] = plan.resources;
  const [create] = web?.steps.filter(({ step }) => step === "create-pods") ?? [];
  assert.deepEqual(
    [create?.count, create?.placements.map(({ node, pods, why }) => `${node} ${pods}: ${why}`)],
    [2, ["n1 1: the best of 2 nodes that fit", "n2 1: the best of 2 nodes that fit"]],
  );
  assert.deepEqual(web?.notes, []);
  assert.deepEqual(await everything(world), before);
});

test("returns an empty plan for an unchanged bundle", LIMIT, async (t) => {
  const world = await deployed(t);
  const plan = await planOf(world, [aContainerService("web")]);
  assert.equal(plan.changes, false);
  assert.deepEqual(
    plan.resources.map(({ action, steps }) => [action, steps]),
    [["unchanged", []]],
  );
});

test("shows a change field by field, with the whole rolling update", LIMIT, async (t) => {
  const world = await deployed(t);
  const changed = aContainerService("web", { scaling: { replicas: 3 } });
  const [web] = (await planOf(world, [withImage(changed, "registry.example/team/app:v2")])).resources;
  assert.deepEqual(web?.changes, [
    { path: "container_service.scaling.replicas", before: "2", after: "3" },
    {
      path: "container_service.container.image",
      before: "registry.example/team/app:v1",
      after: "registry.example/team/app:v2",
    },
  ]);
  assert.equal(made(web), 3);
  assert.deepEqual(stopped(web), (await podNames(world)).sort(), "every old pod");
  assert.ok(new Set(web?.steps.map(({ round }) => round)).size > 1, "in more than one round");
});

test("shows an unschedulable pod with the reason and the rollout's end", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, { cpu: "150m" });
  await nodesReady(world, 1);
  const [web] = (await planOf(world, [aContainerService("web")])).resources;
  const create = web?.steps.find(({ step }) => step === "create-pods");
  const open = create?.placements.find(({ node }) => node === "");
  assert.equal(open?.pods, 1);
  assert.match(open?.why ?? "", /insufficient cpu/);
  assert.match(web?.notes[0] ?? "", /^would fail: .*no node fits/);
});

test("stops every pod in the plan of a removal", LIMIT, async (t) => {
  const world = await deployed(t);
  const names = await podNames(world);
  const plan = await planOf(world, []);
  assert.deepEqual(
    plan.resources.map(({ name, action }) => `${name} ${action}`),
    ["web remove"],
  );
  assert.deepEqual(stopped(plan.resources[0]), names.sort());
  assert.equal(plan.resources[0]?.steps.at(-1)?.step, "forget-resource");
});

test("plans a job to its end", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  await nodesReady(world, 1);
  const [job] = (await planOf(world, [aJob("import", { jobConfig: { completions: 3, parallelism: 2 } })]))
    .resources;
  assert.equal(made(job), 3);
  assert.deepEqual(job?.notes, []);
});

test("refuses a plan for the same reasons as an apply", LIMIT, async (t) => {
  const world = await startWorld(t);
  const bad = aContainerService("web", { container: { name: "main", image: "" } });
  const bundle = aRequest("", [bad], LABELS);
  await assert.rejects(world.operator().plan({ namespace: "shop", bundle }), { code: 3 });
  const elsewhere = { namespace: "other", bundle: aRequest("", [aContainerService("web")]) };
  await assert.rejects(world.operator().plan(elsewhere), { code: 3 });
  const stranger = world.operator(await world.token("viewer", ["other"]));
  await assert.rejects(stranger.plan({ namespace: "shop", bundle }), { code: 7 });
});

test("predicts the steps of the real fleet", LIMIT, async (t) => {
  const world = await deployed(t);
  const change = [withImage(aContainerService("web"), "registry.example/team/app:v2")];
  const [planned] = (await planOf(world, change)).resources;
  const before = await podNames(world);
  const { rolloutId } = await world.forage().applyResources(aRequest("a2", change, LABELS));
  await watchToEnd(world, rolloutId);
  const after = await podNames(world);
  assert.deepEqual(stopped(planned), before.sort());
  assert.equal(made(planned), after.length);
  const { pods } = await world.operator().listPods({ ...EVERY_POD, namespace: "shop" });
  const nodes = new Set(pods.map(({ node }) => node));
  assert.deepEqual([...nodes].sort(), placedOn(planned));
});

test("returns the same plan over HTTP", LIMIT, async (t) => {
  const world = await deployed(t);
  const token = await world.token("viewer", ["shop"]);
  const post = (namespace: string, body: unknown) =>
    fetch(`http://127.0.0.1:${world.coordinator.http.port}/api/v1/namespaces/${namespace}/plan`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
  const container = { name: "main", image: "registry.example/team/app:v2" };
  const web = { name: "web", container_service: { container, scaling: { replicas: 2 } } };
  const response = await post("shop", { labels: LABELS, resources: [web] });
  assert.equal(response.status, 200);
  const answer = (await response.json()) as PlanResponse;
  assert.deepEqual([answer.changes, answer.resources[0]?.action], [true, "update"]);
  for (const [namespace, body, status, message] of [
    ["other", { resources: [web] }, 403, /does not cover/],
    [
      "shop",
      { resources: [{ ...web, replicas: 3 }] },
      400,
      /resources\[0\]\.replicas: unknown field "replicas"/,
    ],
    [
      "shop",
      { resources: [{ name: "web", container_service: { scaling: { replicas: "two" } } }] },
      400,
      /whole number/,
    ],
    ["shop", { resources: [{ ...web, service: { target: "x" } }] }, 400, /only one of them may be given/],
    ["shop", { resources: {} }, 400, /must be a list/],
    ["shop", [], 400, /must be a mapping/],
    ["shop", { namespace: "other", resources: [web] }, 400, /namespace "other"/],
  ] as const) {
    const refused = await post(namespace, body);
    const { message: said } = (await refused.json()) as { message: string };
    assert.equal(refused.status, status, said);
    assert.match(said, message);
  }
});

const EVERY_POD = { labels: {}, workload: "", node: "", name: "" };

async function planOf(world: World, resources: readonly ForageResource[]): Promise<PlanResponse> {
  return world.operator().plan({ namespace: "shop", bundle: aRequest("", resources, LABELS) });
}

/** Deploys two pods of a service on two nodes. */
async function deployed(t: TestContext): Promise<World> {
  const world = await startWorld(t);
  await HollowAgent.start(world, { name: "n1" });
  await HollowAgent.start(world, { name: "n2" });
  await nodesReady(world, 2);
  const request = aRequest("a1", [aContainerService("web")], LABELS);
  const { rolloutId } = await world.forage().applyResources(request);
  await watchToEnd(world, rolloutId);
  return world;
}

function nodesReady(world: World, count: number): Promise<void> {
  return until("the nodes are ready", async () => {
    const { nodes } = await world.operator().listNodes({});
    return nodes.filter(({ ready, report }) => ready && report !== undefined).length === count;
  });
}

function withImage(resource: ForageResource, image: string): ForageResource {
  const copy = structuredClone(resource);
  if (copy.spec?.$case === "containerService" && copy.spec.value.container !== undefined)
    copy.spec.value.container.image = image;
  return copy;
}

async function podNames(world: World): Promise<string[]> {
  const { pods } = await world.operator().listPods({ ...EVERY_POD, namespace: "shop" });
  return pods.filter(({ stopping }) => !stopping).map(({ name }) => name);
}

async function everything(world: World): Promise<unknown> {
  const { records } = await world.store.range("");
  return records.filter(({ key }) => !key.startsWith("events/") && !key.startsWith("reports/"));
}

function made(resource: PlannedResource | undefined): number {
  return (resource?.steps ?? []).reduce((sum, { count }) => sum + count, 0);
}

function stopped(resource: PlannedResource | undefined): string[] {
  return (resource?.steps ?? [])
    .filter(({ step }) => step === "stop-pod")
    .map(({ pod }) => pod)
    .sort();
}

function placedOn(resource: PlannedResource | undefined): string[] {
  const placements = (resource?.steps ?? []).flatMap((step) => step.placements);
  return [...new Set(placements.map(({ node }) => node))].sort();
}
