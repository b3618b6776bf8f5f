import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeReport, PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { PutObjectRequest, UpdateNodeRequest } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { aCertificate } from "./support/gateway/a-certificate.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, aRoute, aService } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

/** A node with a hostile root tries to receive what the coordinator has not bound to it. */

const LIMIT = { timeout: 120_000 };
const IN_SHOP = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };

test("sends no pods and secrets to a node that reports another node's hostname", LIMIT, async (t) => {
  const world = await startWorld(t);
  await putSecret(world, "db", { password: Buffer.from("hunter2") });
  const stolen = { "kubernetes.io/hostname": "a", hostname: "a", "node-role.kubernetes.io/db": "true" };
  const thief = await HollowAgent.start(world, { name: "thief", labels: stolen });
  for (const [name, selector] of [
    ["full", { "kubernetes.io/hostname": "a" }],
    ["short", { hostname: "a" }],
    ["role", { "node-role.kubernetes.io/db": "true" }],
  ] as const)
    await apply(world, name, withSecret(name, selector));
  await until("the pods are known to fit nowhere", async () => {
    const { pods } = await world.operator().listPods(IN_SHOP);
    return pods.length === 3 && pods.every(({ unschedulable }) => unschedulable !== "");
  });
  assert.equal(thief.assignments.size, 0);
  const honest = await HollowAgent.start(world, { name: "a" });
  await until("the node of that name has its pod", () => honest.assignments.size === 1);
  assert.equal(thief.assignments.size, 0);
});

test("sends no routes and keys to a node that labels itself a gateway", LIMIT, async (t) => {
  const world = await startWorld(t);
  await putSecret(world, "tls", await aCertificate("shop.example"));
  const label = { "forage.dev/gateway": "default" };
  const thief = await HollowAgent.start(world, { name: "thief", labels: label });
  const gateway = await HollowAgent.start(world, { name: "edge", tokenLabels: label });
  await apply(world, "web", aContainerService("web"), aService("web", "web"));
  await apply(
    world,
    "front",
    aContainerService("web"),
    aService("web", "web"),
    aRoute("front", { hostnames: ["shop.example"], tls: { certificateRef: "tls" } }),
  );
  await until("the gateway serves the route", () => gateway.gateway.hosts.has("shop.example"));
  await until("the other node knows that it serves none", () => thief.gateway.gateway === "");
  assert.equal(thief.gateway.hosts.size, 0);
  assert.equal(thief.gateway.certificates.size, 0);
});

test(
  "reports refused labels as a condition and an event of the node, and accepts reported facts",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const labels = {
      "forage.dev/gateway": "default",
      "topology.kubernetes.io/zone": "z1",
      "kubernetes.io/arch": "amd64",
      "example.com/disk": "ssd",
      "kubernetes.io/hostname": "n1",
    };
    await HollowAgent.start(world, { name: "n1", labels });
    const [node] = (await world.operator().listNodes({})).nodes;
    const { "forage.dev/gateway": refused, ...counted } = labels;
    assert.deepEqual(node?.labels, counted);
    const condition = node?.report?.conditions.find(({ type }) => type === "LabelsRefused");
    assert.match(condition?.message ?? "", /forage\.dev\/gateway=default.*forage node label n1 KEY=VALUE/);
    const request = { namespace: "", filter: undefined, after: 0n, limit: 0 };
    await until("the event is recorded", async () => {
      const { events } = await world.operator().listEvents(request);
      return events.some(({ reason, message }) => reason === "LabelsRefused" && message.includes(refused));
    });
  },
);

test("prefers the operator's labels to reported ones, but not to the node's name", LIMIT, async (t) => {
  const world = await startWorld(t);
  const zone = "topology.kubernetes.io/zone";
  await HollowAgent.start(world, { name: "n1", labels: { [zone]: "mine" } });
  const set = (setLabels: Record<string, string>) =>
    world.operator().updateNode(UpdateNodeRequest.fromPartial({ name: "n1", setLabels }));
  const { node } = await set({ [zone]: "z1", "forage.dev/team": "x" });
  assert.equal(node?.labels[zone], "z1");
  assert.equal(node?.labels["forage.dev/team"], "x");
  await assert.rejects(set({ "kubernetes.io/hostname": "n2" }), {
    code: status.INVALID_ARGUMENT,
    details: /set_labels\[kubernetes\.io\/hostname\]/,
  });
  const token = { ttlSeconds: 0, nodeName: "n3", reusable: false, labels: { hostname: "n1" }, taints: [] };
  await assert.rejects(world.operator().createJoinToken(token), { code: status.INVALID_ARGUMENT });
});

test("ignores a node's reports about another node's pods", LIMIT, async (t) => {
  const world = await startWorld(t);
  const victim = await HollowAgent.start(world, { name: "a" });
  await apply(world, "web", aContainerService("web"));
  await until("the pods run", async () => {
    const { pods } = await world.operator().listPods(IN_SHOP);
    return pods.length === 2 && pods.every((pod) => pod.status?.ready === true);
  });
  const thief = await HollowAgent.start(world, { name: "thief" });
  const uids = [...victim.assignments.keys()];
  thief.report(...uids.map((uid) => PodStatus.fromPartial({ uid, phase: PodPhase.REMOVED })));
  thief.say({ $case: "claimsRemoved", value: { claims: [{ namespace: "shop", name: "data" }] } });
  thief.report(...uids.map((uid) => PodStatus.fromPartial({ uid, podIp: "10.9.9.9", ready: true })));
  // A change of the node's report is stored after the messages before it, so these have been
  // processed once it is visible.
  thief.say({ $case: "nodeReport", value: reportWith({ "example.com/done": "yes" }) });
  await until("the messages are taken", async () => {
    const { nodes } = await world.operator().listNodes({});
    return nodes.some(({ labels }) => labels["example.com/done"] === "yes");
  });
  const { pods } = await world.operator().listPods(IN_SHOP);
  assert.deepEqual(pods.map(({ uid }) => uid).sort(), uids.sort());
  for (const pod of pods) assert.notEqual(pod.status?.podIp, "10.9.9.9");
});

test("continues when a node reports later data than the store contains", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, { name: "a" });
  const seen = { lineage: "lineage-1/invented", assignmentRevision: 1n << 60n };
  await HollowAgent.start(world, { name: "thief", seen });
  await apply(world, "web", aContainerService("web"));
  await until("the pods run", async () => {
    const { pods } = await world.operator().listPods(IN_SHOP);
    return pods.length === 2 && pods.every((pod) => pod.status?.ready === true);
  });
});

function reportWith(labels: Record<string, string>) {
  return NodeReport.fromPartial({ address: "127.0.0.1", labels });
}

function withSecret(name: string, nodeSelector: Record<string, string>) {
  return aContainerService(name, {
    scaling: { replicas: 1 },
    podConfig: { nodeSelector },
    container: {
      name: "main",
      image: "registry.example/team/app:v1",
      env: [
        {
          name: "PASSWORD",
          valueSource: { $case: "secretRef", value: { secretName: "db", key: "password" } },
        },
      ],
    },
  });
}

async function apply(world: World, id: string, ...resources: Parameters<typeof aRequest>[1]): Promise<void> {
  await world.forage().applyResources(aRequest(id, resources, { part: id }));
}

async function putSecret(world: World, name: string, data: Record<string, Buffer>): Promise<void> {
  await world.operator().putObject(
    PutObjectRequest.fromPartial({
      namespace: "shop",
      object: { namespace: "shop", name, spec: { $case: "secret", value: { data } } },
    } as object),
  );
}
