import assert from "node:assert/strict";
import { test } from "node:test";
import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const OFTEN = { autoscaling: { intervalSeconds: 1 } };
/** Returns the usage of a pod that has been ready for long, as an agent reports it. */
const usage = (cores: number) => ({
  cpuNanoCores: BigInt(Math.round(cores * 1e9)),
  windowMs: 1_000n,
  runningMs: 60_000n,
  readyMs: 60_000n,
});

function scaled(autoscaling: object, more: object = {}) {
  const scaling = {
    replicas: 1,
    autoscaling: { maxReplicas: 4, scaleDownStabilization: { seconds: 1n }, ...autoscaling },
  };
  return aContainerService("web", { scaling, ...more });
}

test("measures the cpu of pods on their nodes, and scales the replicas up and down", LIMIT, async (t) => {
  const world = await startWorld(t, {}, OFTEN);
  const agent = await HollowAgent.start(world);
  await world.forage().applyResources(aRequest("a1", [scaled({ targetCpuUtilizationPercent: 50 })]));
  await until("metrics of one pod are requested", () => agent.metricsRequests.length === 1);
  assert.deepEqual(
    agent.metricsRequests.map(({ usage: asked, scrape }) => [asked, scrape]),
    [[true, undefined]],
  );
  // Each pod requests 100m, so three of them together use what one uses at 150 %.
  agent.measure = () => usage(0.15 / agent.metricsRequests.length);
  await until("there are three", async () => (await web(world)).readyReplicas === 3);
  await until("they are measured, all of them", () => agent.metricsRequests.length === 3);
  const { autoscaling, replicas } = await web(world);
  assert.equal(replicas, 3);
  assert.equal(autoscaling?.lastScaleReason, "1 → 3: cpu is at 150% of requests, target 50%");
  await until("it is steady", async () => (await web(world)).autoscaling?.metrics[0]?.value === "50%");
  agent.measure = () => usage(0.01);
  await until("one is enough", async () => (await web(world)).readyReplicas === 1);
  await until("one is measured", () => agent.metricsRequests.length === 1);
  await until(
    "both events are published",
    async () => (await scaleEvents(world)).join() === "ScaledUp,ScaledDown",
  );
});

test("scales by a pushed metric until it expires, and then keeps the replicas", LIMIT, async (t) => {
  const world = await startWorld(t, {}, OFTEN);
  const agent = await HollowAgent.start(world);
  const customMetrics = [{ name: "queue_depth", targetType: "AverageValue", targetValue: "10" }];
  await world.forage().applyResources(aRequest("a1", [scaled({ customMetrics })]));
  const token = await world.token("editor", ["shop"]);
  const push = (value: number | string, ttlSeconds = 0) =>
    call(world, "PUT", "queue_depth", token, { value, ttlSeconds });
  await until("it is ready", async () => (await web(world)).readyReplicas === 1);
  assert.deepEqual(agent.metricsRequests, [], "no pod is measured for it");
  assert.equal((await push("35")).status, 200);
  await until("there are four", async () => (await web(world)).readyReplicas === 4);
  await push(1, 1);
  world.clock.skip(1_000);
  await until("it isn't known", async () => (await web(world)).autoscaling?.metrics[0]?.value === "");
  assert.match(
    (await web(world)).autoscaling?.reason ?? "",
    /^stays at \d: all metrics are unknown \(queue_depth: /,
  );
  await push(20);
  await until("two are enough", async () => (await web(world)).readyReplicas === 2);

  await world.restart();
  agent.again();
  await until(
    "it isn't known any more",
    async () => (await web(world)).autoscaling?.metrics[0]?.value === "",
  );
  assert.equal((await web(world)).replicas, 2, "what was decided is kept");
});

test("reads pods' own metrics by name, at the location in their annotations", LIMIT, async (t) => {
  const world = await startWorld(t, {}, OFTEN);
  const agent = await HollowAgent.start(world);
  const customMetrics = [{ name: "http_requests_total", targetType: "AverageValue", targetValue: "100" }];
  const annotations = { "forage.dev/metrics-port": "8080", "forage.dev/metrics-path": "/stats" };
  const web1 = scaled({ customMetrics }, { podConfig: { annotations } });
  agent.measure = () => ({ values: { http_requests_total: 200, other: 7 } });
  await world.forage().applyResources(aRequest("a1", [web1]));
  await until("there are four", async () => (await web(world)).readyReplicas === 4);
  const { scrape, usage: asked } = agent.metricsRequests[0] ?? {};
  assert.deepEqual(scrape, { port: 8080, path: "/stats", scheme: "http", names: ["http_requests_total"] });
  assert.equal(asked, false);
  const uids = [...agent.assignments.keys()];
  await world
    .forage()
    .applyResources(
      aRequest("a2", [aContainerService("web", { scaling: { replicas: 4 }, podConfig: { annotations } })]),
    );
  await until("no metrics are requested any more", () => agent.metricsRequests.length === 0);
  assert.deepEqual([...agent.assignments.keys()], uids, "the pods are the same");
  assert.equal((await web(world)).autoscaling, undefined);
});

test("starts with the given size, ignores a later one, and applies changed limits", LIMIT, async (t) => {
  const world = await startWorld(t, {}, OFTEN);
  await HollowAgent.start(world);
  const customMetrics = [{ name: "rps", targetType: "AverageValue", targetValue: "10" }];
  const apply = (id: string, replicas: number, limits: object) =>
    world
      .forage()
      .applyResources(
        aRequest(id, [
          aContainerService("web", { scaling: { replicas, autoscaling: { customMetrics, ...limits } } }),
        ]),
      );
  await apply("a1", 3, { maxReplicas: 5 });
  await until("three are ready", async () => (await web(world)).readyReplicas === 3);
  await until("the autoscaler has evaluated it", async () => (await web(world)).autoscaling !== undefined);
  await apply("a2", 1, { maxReplicas: 5 });
  await until("the limit is known", async () => (await web(world)).autoscaling?.currentReplicas === 3);
  assert.equal((await web(world)).replicas, 3);
  await apply("a3", 1, { maxReplicas: 2 });
  await until("two are ready", async () => (await web(world)).readyReplicas === 2);
  await until("that is written down", async () => (await web(world)).autoscaling?.maxReplicas === 2);
  await apply("a4", 0, { maxReplicas: 5, minReplicas: 4 });
  await until("four are ready", async () => (await web(world)).readyReplicas === 4);
});

for (const [what, role, method, name, body, status, message] of [
  ["a viewer who pushes", "viewer", "PUT", "rps", { value: 1 }, 403, /needs the role editor/],
  ["nobody", "", "GET", "rps", undefined, 401, /no credentials/],
  ["no value", "editor", "PUT", "rps", {}, 400, /value/],
  ["a word for a value", "editor", "PUT", "rps", { value: "many" }, 400, /quantity/],
  ["a negative value", "editor", "PUT", "rps", { value: -1 }, 400, /at least 0/],
  [
    "a value of pod and workload",
    "editor",
    "PUT",
    "rps",
    { value: 1, pod: "a", workload: "b" },
    400,
    /workload/,
  ],
  ["a value for more than an hour", "editor", "PUT", "rps", { value: 1, ttlSeconds: 3_601 }, 400, /3600/],
  ["what is measured", "editor", "PUT", "cpu", { value: 1 }, 400, /measured by the agents/],
  ["an unknown field", "editor", "PUT", "rps", { value: 1, name: "x" }, 400, /name/],
  ["what isn't there", "editor", "DELETE", "rps", undefined, 404, /no value of metric "rps"/],
] as const) {
  test(`refuses ${what} with the reason`, LIMIT, async (t) => {
    const world = await startWorld(t);
    const token = role === "" ? "" : await world.token(role, ["shop"]);
    const answer = await call(world, method, name, token, body);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.match(String(answer.body.message), message);
  });
}

test("lists values with their objects, and deletes them individually", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await world.token("editor", ["shop"]);
  const gpu = "vendor.example%2Fgpu";
  for (const [name, body] of [
    ["rps", { value: 1 }],
    ["rps", { value: "2k", workload: "web" }],
    ["rps", { value: 0.5, pod: "web-1", ttlSeconds: 10 }],
    [gpu, { value: 1, pod: "web-1" }],
  ] as const)
    assert.equal((await call(world, "PUT", name, token, body)).status, 200);
  const items = (await call(world, "GET", "rps", token)).body.items as {
    value: number;
    ttlSeconds: number;
  }[];
  assert.deepEqual(
    items.map(({ value, ttlSeconds }) => [value, ttlSeconds]),
    [
      [1, 60],
      [0.5, 10],
      [2000, 60],
    ],
  );
  assert.equal(((await call(world, "GET", "", token)).body.items as unknown[]).length, 4);
  assert.equal((await call(world, "DELETE", "rps?workload=web", token)).status, 200);
  assert.equal(((await call(world, "GET", "rps", token)).body.items as unknown[]).length, 2);
  const elsewhere = await world.token("editor", ["other"]);
  assert.equal((await call(world, "GET", "rps", elsewhere)).status, 403);
});

/** Returns the kinds of decisions, in the order in which they were first made. */
async function scaleEvents(world: World): Promise<string[]> {
  const filter = { kind: "container_service", name: "web", type: "", reason: "", since: undefined };
  const request = { namespace: "shop", filter, after: 0n, limit: 0 };
  const { events } = await world.operator().listEvents(request);
  return [...new Set(events.map(({ reason }) => reason).filter((reason) => reason.startsWith("Scaled")))];
}

async function web(world: World): Promise<Resource> {
  const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
  const found = resources.find(({ name }) => name === "web");
  assert.ok(found);
  return found;
}

async function call(world: World, method: string, name: string, token: string, body?: object) {
  const { host, port } = world.coordinator.http;
  const path = name === "" ? "" : `/${name}`;
  const response = await fetch(`http://${host}:${port}/api/v1/namespaces/shop/metrics${path}`, {
    method,
    headers: {
      "content-type": "application/json",
      ...(token !== "" && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
