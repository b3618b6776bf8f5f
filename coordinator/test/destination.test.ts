import assert from "node:assert/strict";
import { test } from "node:test";
import { DestinationService } from "@forage/proto/destination";
import { type PodAssignment, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { Metadata, status } from "@grpc/grpc-js";
import { callsOf } from "./support/calls.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { Lookup } from "./support/lookup.ts";
import { aContainerService, aRequest, aService, watchToEnd } from "./support/requests.ts";
import { collected } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const WEB = "web.shop.svc.cluster.local:80";

for (const listener of ["TLS", "plain text"] as const) {
  test(`sends the present state at once, and then each change, over ${listener}`, LIMIT, async (t) => {
    const world = await startWorld(t);
    const found = listener === "TLS" ? lookUp(world, WEB) : lookUpPlain(world, WEB);
    await found.until(() => found.exists === false);
    await apply(world, [aService("web", "web")]);
    await found.until(() => found.exists === true && found.endpoints.size === 0);
    const agent = await HollowAgent.start(world);
    await apply(world, [aService("web", "web"), aContainerService("web")]);
    await found.until(() => found.endpoints.size === 2);
    assert.ok([...found.endpoints.keys()].every((address) => address.startsWith("127.0.0.1:2")));

    const [first, second] = [...agent.assignments.values()];
    assert.ok(first && second);
    agent.report(notReady(agent, first));
    await found.until(() => found.pods().join() === second.name);
    agent.report(notReady(agent, second));
    await found.until(() => found.exists === true && found.endpoints.size === 0);
    agent.report(agent.running(first));
    await found.until(() => found.pods().join() === first.name);

    const late = lookUp(world, WEB);
    await late.until(() => late.endpoints.size === 1);
    assert.deepEqual(late.updates, ["add"], "the first message of a late stream holds everything");
    await world.operator().delete({ namespace: "shop", resources: [], labels: {}, all: true });
    await found.until(() => found.exists === false);
  });
}

test("removes a stopping pod, and adds its replacement", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await apply(world, [aService("web", "web"), aContainerService("web")]);
  const found = lookUp(world, WEB);
  await found.until(() => found.endpoints.size === 2);
  const before = found.pods();
  const container = { name: "main", image: "registry.example/team/app:v2", ports: [{ containerPort: 8080 }] };
  await apply(world, [aService("web", "web"), aContainerService("web", { container })]);
  const expected = (): string[] =>
    [...agent.assignments.values()].filter(({ stopping }) => !stopping).map(({ name }) => name);
  await found.until(() => found.pods().join() === expected().sort().join());
  assert.equal(found.pods().filter((pod) => before.includes(pod)).length, 0);
});

test("removes endpoints of a lost node, and adds them when it returns", LIMIT, async (t) => {
  const tolerant = {
    startGraceSeconds: 0,
    unreachableTolerationSeconds: 3_600,
    recoveryGraceSeconds: 1,
    notReadyTolerationSeconds: 0,
  };
  const world = await startWorld(t, {}, { nodes: { ...tolerant, unreachableSeconds: 1 } });
  const lost = await HollowAgent.start(world, { name: "n1", address: "192.0.2.1" });
  const kept = await HollowAgent.start(world, { name: "n2", address: "192.0.2.2" });
  await apply(world, [aService("web", "web"), aContainerService("web", { scaling: { replicas: 4 } })]);
  const found = lookUp(world, WEB);
  await found.until(() => found.endpoints.size === 4);
  assert.ok(lost.assignments.size > 0 && kept.assignments.size > 0, "both have pods");
  lost.close();
  const of = (address: string): number =>
    [...found.endpoints.keys()].filter((key) => key.startsWith(address)).length;
  await found.until(() => of("192.0.2.1:") === 0);
  assert.equal(of("192.0.2.2:"), kept.assignments.size);
  lost.again();
  await found.until(() => found.endpoints.size === 4);
});

test("resolves ports to the service's targets, or to the same number", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const ports = [
    { name: "http", containerPort: 8080 },
    { name: "metrics", containerPort: 9090 },
  ];
  const container = { name: "main", image: "app:v1", ports };
  const value = {
    target: "web",
    ports: [
      { name: "a", port: 80, targetPort: 8080 },
      { name: "b", port: 9090 },
    ],
  };
  const service = ForageResource.fromPartial({ name: "web", spec: { $case: "service", value } });
  await apply(world, [service, aContainerService("web", { container })]);
  for (const [path, count] of [
    ["web.shop.svc.cluster.local", 2],
    ["web.shop.svc.cluster.local:80", 2],
    ["WEB.SHOP.SVC.CLUSTER.LOCAL.:9090", 2],
    ["web.shop.svc.cluster.local:8080", 2],
    ["web.shop.svc.cluster.local:81", 0],
    ["api.shop.svc.cluster.local:80", 0],
    ["web.other.svc.cluster.local:80", 0],
  ] as const) {
    const found = lookUp(world, path);
    await found.read();
    assert.equal(found.endpoints.size, count, path);
    assert.equal(found.exists, path.toLowerCase().startsWith("web.shop"), path);
    found.close();
  }
});

test(
  "answers INVALID_ARGUMENT for a path that can't be a service's, regardless of other fields",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    for (const path of [
      "",
      "web",
      "10.0.0.1:80",
      "web.shop.svc.cluster.local:0",
      "web.shop.svc.example.com:80",
    ]) {
      for (const destination of [world.destination(), world.plainDestination()]) {
        await assert.rejects(collected(destination.get({ scheme: "k8s", path, contextToken: "{" })), {
          code: status.INVALID_ARGUMENT,
        });
      }
    }
    const found = new Lookup(
      world.destination().get({ scheme: "k8s", path: WEB, contextToken: "{{garbage" }),
    );
    await found.until(() => found.exists === false);
  },
);

test("sends a stalled reader the newest state, not all changes", LIMIT, async (t) => {
  const world = await startWorld(t);
  // Long names make messages of 7 KiB, which soon fill the buffers on the way to a stalled reader.
  const name = `web-${"x".repeat(44)}`;
  const agent = await HollowAgent.start(world, { cpu: "64", name: `n-${"x".repeat(50)}` });
  await apply(world, [aService("web", name), aContainerService(name, { scaling: { replicas: 30 } })]);
  const [stalled, attentive] = [lookUp(world, WEB), lookUp(world, WEB)];
  await stalled.until(() => stalled.endpoints.size === 30);
  await attentive.until(() => attentive.endpoints.size === 30);
  const pods = [...agent.assignments.values()];
  const changes = 200;
  for (let change = 0; change < changes; change++) {
    const gone = change % 2 === 0;
    agent.report(...pods.map((pod) => (gone ? notReady(agent, pod) : agent.running(pod))));
    await attentive.until(() => attentive.endpoints.size === (gone ? 0 : 30));
  }
  const [left, ...others] = pods;
  assert.ok(left);
  agent.report(agent.running(left), ...others.map((pod) => notReady(agent, pod)));
  await attentive.until(() => attentive.endpoints.size === 1);
  await stalled.until(() => stalled.pods().join() === left.name);
  assert.ok(stalled.updates.length < changes / 2, `${stalled.updates.length} updates`);
});

test(
  "ends streams with OK when the coordinator stops, and answers the same after a restart",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world);
    await apply(world, [aService("web", "web"), aContainerService("web")]);
    const streams = [lookUp(world, WEB), lookUpPlain(world, WEB)];
    for (const stream of streams) await stream.until(() => stream.endpoints.size === 2);
    const reading = streams.map(async (stream) => {
      while (await stream.read());
    });
    agent.close();
    await world.restart();
    await Promise.all(reading);
    for (const stream of streams) assert.equal((await stream.ended).code, status.OK);
    const found = lookUp(world, WEB);
    await found.until(() => found.endpoints.size === 2);
  },
);

test("serves hundreds of look-ups over one connection", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  await apply(world, [aService("web", "web"), aContainerService("web")]);
  const destination = world.destination();
  const streams = Array.from({ length: 300 }, () => {
    return new Lookup(destination.get({ scheme: "", path: WEB, contextToken: "" }));
  });
  await Promise.all(streams.map((stream) => stream.until(() => stream.endpoints.size === 2)));
});

function lookUp(world: World, path: string): Lookup {
  return new Lookup(world.destination().get({ scheme: "", path, contextToken: "" }));
}

function lookUpPlain(world: World, path: string): Lookup {
  return new Lookup(world.plainDestination().get({ scheme: "", path, contextToken: "" }));
}

/** Applies the resources with a new apply_id, and waits for the end of the rollout. */
async function apply(world: World, resources: readonly ForageResource[]): Promise<void> {
  const applyId = `a-${world.store.revision}`;
  const { rolloutId } = await world.forage().applyResources(aRequest(applyId, resources));
  const lines = await watchToEnd(world, rolloutId);
  assert.doesNotMatch(lines.at(-1) ?? "", /FAILED/);
}

function notReady(agent: HollowAgent, pod: PodAssignment): PodStatus {
  return PodStatus.fromPartial({ ...agent.running(pod), ready: false });
}

test(
  "relays look-ups of a node for the namespaces of its pods, and all for its own processes",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world);
    await apply(world, [aService("web", "web"), aContainerService("web")]);
    const relayed = (namespace: string | undefined, path: string): Lookup => {
      const metadata = new Metadata();
      if (namespace !== undefined) metadata.set("forage-namespace", namespace);
      const { get } = callsOf(DestinationService, agent.client, metadata);
      return new Lookup(get({ scheme: "", path, contextToken: "" }));
    };
    for (const namespace of ["shop", undefined]) {
      const found = relayed(namespace, WEB);
      await found.until(() => found.endpoints.size === 2);
      found.close();
    }
    for (const [namespace, path] of [
      ["bank", WEB],
      ["shop", "web.bank.svc.cluster.local:80"],
    ] as const) {
      const refused = relayed(namespace, path);
      assert.equal((await refused.ended).code, status.PERMISSION_DENIED);
    }
  },
);
