import assert from "node:assert/strict";
import { test } from "node:test";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { OperatorServiceService, PlanRequest } from "@forage/proto/forage/operator/v1/operator";
import { ApplyResourcesRequest, ForageServiceService, ScalingPolicy } from "@forage/proto/forest/v1/forage";
import { BadRequest } from "@forage/proto/google/rpc/error_details";
import { Status } from "@forage/proto/google/rpc/status";
import { Client, type ServiceError, status } from "@grpc/grpc-js";
import { isFieldPath } from "./support/forest/fields.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, aService, describeEvent, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const ALL = { namespace: "shop", labels: {} };

test("stores no resource if one of them is invalid", LIMIT, async (t) => {
  const world = await startWorld(t);
  const { revision } = world.store;
  const bad = aContainerService("bad", { container: { name: "main", image: "Not An Image" } });
  const request = aRequest("a1", [aContainerService("web"), bad, aService("web", "web")]);
  const error = await refused(world.forage().applyResources(request));
  assert.equal(error.code, status.INVALID_ARGUMENT);
  assert.deepEqual(fieldsOf(error), ["resources[1].container_service.container.image"]);
  assert.deepEqual((await world.operator().listResources(ALL)).resources, []);
  assert.equal(world.store.revision, revision);
  await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
});

test("refuses a field that only a newer version knows, and stores nothing", LIMIT, async (t) => {
  const world = await startWorld(t);
  const { path } = ForageServiceService.applyResources;
  const client = new Client(world.address, channelCredentials({ caPem: world.caPem }));
  t.after(() => client.close());
  const known = ApplyResourcesRequest.encode(aRequest("a1", [aContainerService("web")])).finish();
  // Field 999 with the text "x".
  const newer = Buffer.concat([known, Buffer.from([0xba, 0x3e, 0x01, 0x78])]);
  const asIs = (bytes: Buffer): Buffer => bytes;
  const metadata = bearerMetadata(await world.token("editor", ["shop"]));
  const error = await refused(
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, asIs, asIs, newer, metadata, (failure, answer) =>
        failure === null ? resolve(answer) : reject(failure),
      );
    }),
  );
  assert.equal(error.code, status.INVALID_ARGUMENT);
  assert.deepEqual(fieldsOf(error), ["#999"]);
  assert.deepEqual((await world.operator().listResources(ALL)).resources, []);
});

test("refuses unknown fields in requests and streams of the operator service", LIMIT, async (t) => {
  const world = await startWorld(t);
  const client = new Client(world.address, channelCredentials({ caPem: world.caPem }));
  t.after(() => client.close());
  const asIs = (bytes: Buffer): Buffer => bytes;
  const metadata = bearerMetadata(await world.token("editor", ["shop"]));
  const bundle = ApplyResourcesRequest.encode(aRequest("a1", [])).finish();
  const unknown = Buffer.from([0xba, 0x3e, 0x01, 0x78]);
  // The bundle of a plan, with a field that it does not have.
  const nested = Buffer.concat([Buffer.from([0x12, bundle.length + unknown.length]), bundle, unknown]);
  const plan = Buffer.concat([
    PlanRequest.encode(PlanRequest.fromPartial({ namespace: "shop" })).finish(),
    nested,
  ]);
  const planned = new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      OperatorServiceService.plan.path,
      asIs,
      asIs,
      plan,
      metadata,
      (failure, answer) => (failure === null ? resolve(answer) : reject(failure)),
    );
  });
  const error = await refused(planned);
  assert.equal(error.code, status.INVALID_ARGUMENT);
  assert.deepEqual(fieldsOf(error), ["bundle.#999"]);
  assert.match(error.details, /does not know the fields bundle\.#999: upgrade it, or leave them out/);
  const exec = client.makeBidiStreamRequest(OperatorServiceService.exec.path, asIs, asIs, metadata);
  exec.write(unknown);
  const ended = await refused(
    new Promise((resolve, reject) => exec.on("error", reject).on("end", resolve).resume()),
  );
  assert.deepEqual([ended.code, fieldsOf(ended)], [status.INVALID_ARGUMENT, ["#999"]]);
});

test("reports thousands of violations as INVALID_ARGUMENT, with as many of them as fit", LIMIT, async (t) => {
  const world = await startWorld(t);
  const env = Array.from({ length: 100 }, (_, index) => ({ name: `${index} 😀 ${"x".repeat(200)}` }));
  const container = { name: "Main 😀", image: "😀".repeat(600), env };
  const resources = Array.from({ length: 30 }, (_, index) => aContainerService(`w${index}`, { container }));
  const error = await refused(world.forage().applyResources(aRequest("a1", resources)));
  assert.equal(error.code, status.INVALID_ARGUMENT);
  assert.match(error.details, /^the request is invalid: resources\[0\]\..*more/);
  assert.ok(error.details.length <= 1_501);
  const fields = fieldsOf(error);
  assert.ok(fields.length >= 20, `${fields.length}`);
  for (const field of fields) assert.ok(isFieldPath(field), field);
});

test("refuses a request of any excessive length with the permitted length", LIMIT, async (t) => {
  const world = await startWorld(t);
  const request = (bytes: number) => {
    const resources = Array.from({ length: 40 }, (_, index) => {
      const value = "x".repeat(Math.floor(bytes / 40));
      const env = [{ name: "V", valueSource: { $case: "value", value } }];
      return aContainerService(`w${index}`, { container: { name: "main", image: "app:v1", env } });
    });
    return aRequest("a1", resources);
  };
  const error = await refused(world.forage().applyResources(request(2_000_000)));
  assert.equal(error.code, status.INVALID_ARGUMENT);
  assert.match(error.details, /must not be longer than 1048576 bytes/);
  assert.equal(
    (await refused(world.forage().applyResources(request(5_000_000)))).code,
    status.RESOURCE_EXHAUSTED,
  );
  await world.forage().applyResources(request(900_000));
});

test("refuses a bundle whose records and removals do not fit into one transaction", LIMIT, async (t) => {
  const world = await startWorld(t);
  const large = (names: string) =>
    Array.from({ length: 10 }, (_, index) => {
      const env = [{ name: "V", valueSource: { $case: "value", value: "x".repeat(90_000) } }];
      return aContainerService(`${names}${index}`, { container: { name: "main", image: "app:v1", env } });
    });
  const labels = { app: "shop" };
  await world.forage().applyResources(aRequest("a1", large("a"), labels));
  const error = await refused(world.forage().applyResources(aRequest("a2", large("b"), labels)));
  assert.equal(error.code, status.INVALID_ARGUMENT);
  assert.match(error.details, /records of \d+ bytes/);
  assert.equal((await world.operator().listResources(ALL)).resources.length, 10);
});

test("keeps the order of the request", LIMIT, async (t) => {
  const world = await startWorld(t);
  const names = ["zeta", "alpha", "mid"];
  const { rolloutId } = await world.forage().applyResources(
    aRequest(
      "a1",
      names.map((name) => aService(name, "web")),
    ),
  );
  const lines = await watchToEnd(world, rolloutId);
  assert.deepEqual(
    lines.map((line) => line.split(" ")[0]),
    names.map((name) => `service/${name}`),
  );
});

test("sends a change of labels to every pod without a restart", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const web = aContainerService("web");
  await applied(world, aRequest("a1", [web], { release: "1" }));
  const before = [...agent.assignments.values()].map(({ uid, specHash }) => `${uid} ${specHash}`).sort();
  await applied(world, aRequest("a2", [web], { release: "2" }));
  await until("the agent has the labels", () =>
    [...agent.assignments.values()].every(({ labels }) => labels.release === "2"),
  );
  const after = [...agent.assignments.values()].map(({ uid, specHash }) => `${uid} ${specHash}`).sort();
  assert.deepEqual(after, before);
  const { resources } = await world.operator().listResources(ALL);
  assert.deepEqual(resources[0]?.labels, { release: "2" });
});

test(
  "treats missing scaling as one replica over gRPC, and empty scaling as none, as the wire format can't distinguish 0",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const encoded = (scaling: object) => ScalingPolicy.encode(ScalingPolicy.fromPartial(scaling)).finish();
    assert.deepEqual(encoded({}), encoded({ replicas: 0 }), "replicas has no presence in the contract");
    const resources = [
      aContainerService("silent", { scaling: undefined }),
      aContainerService("empty", { scaling: {} }),
      aContainerService("none", { scaling: { replicas: 0 } }),
    ];
    await world.forage().applyResources(aRequest("a1", resources));
    const stored = (await world.operator().listResources(ALL)).resources;
    assert.deepEqual(Object.fromEntries(stored.map(({ name, replicas }) => [name, replicas])), {
      silent: 1,
      empty: 0,
      none: 0,
    });
  },
);

test("keeps the remaining pods when it scales", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const scaled = (replicas: number) => aContainerService("web", { scaling: { replicas } });
  await applied(world, aRequest("a1", [scaled(4)]));
  const four = [...agent.assignments.keys()];
  await applied(world, aRequest("a2", [scaled(2)], { app: "shop" }));
  await until("two are gone", () => agent.assignments.size === 2);
  const two = [...agent.assignments.keys()];
  assert.ok(two.every((uid) => four.includes(uid)));
  await applied(world, aRequest("a3", [scaled(3)]));
  assert.equal([...agent.assignments.keys()].filter((uid) => two.includes(uid)).length, 2);
});

test("accepts one of many concurrent equal applies, and ends every rollout", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { cpu: "64" });
  const rollouts = await Promise.all(
    Array.from({ length: 10 }, async (_, index) => {
      const container = { name: "main", image: `registry.example/team/app:v${index}` };
      return world.forage().applyResources(aRequest(`a${index}`, [aContainerService("web", { container })]));
    }),
  );
  const ends = await Promise.all(
    rollouts.map(async ({ rolloutId }) => (await watchToEnd(world, rolloutId)).at(-1)),
  );
  const won = ends.filter((end) => /SUCCEEDED 2\/2 ready/.test(end ?? ""));
  assert.ok(won.length >= 1, ends.join("\n"));
  for (const end of ends) assert.match(end ?? "", /SUCCEEDED 2\/2 ready|FAILED superseded by rollout r-/);
  await until("only pods of one revision are left", () => {
    const pods = [...agent.assignments.values()];
    return pods.length === 2 && new Set(pods.map(({ specHash }) => specHash)).size === 1;
  });
});

test(
  "treats one apply_id sent by many concurrently as one rollout, or as a conflict of content",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const same = aRequest("a1", [aContainerService("web")]);
    const ids = await Promise.all(Array.from({ length: 10 }, () => world.forage().applyResources(same)));
    assert.equal(new Set(ids.map(({ rolloutId }) => rolloutId)).size, 1);
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, (_, index) => {
        const resource = aContainerService("api", { scaling: { replicas: index } });
        return world.forage().applyResources(aRequest("a2", [resource]));
      }),
    );
    assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
    for (const result of results)
      if (result.status === "rejected") assert.equal(result.reason.code, status.ALREADY_EXISTS);
  },
);

test("creates, places and reports a thousand pods", { timeout: 180_000 }, async (t) => {
  const world = await startWorld(
    t,
    {},
    { rollout: { progressDeadlineSeconds: 60, placementDeadlineSeconds: 60, stableSeconds: 0 } },
  );
  const names = Array.from({ length: 10 }, (_, index) => `n${index}`);
  const agents = await Promise.all(names.map((name) => HollowAgent.start(world, { name, cpu: "64" })));
  const { rolloutId } = await world
    .forage()
    .applyResources(
      aRequest("a1", [aContainerService("web", { scaling: { replicas: 1000 } }), aService("web", "web")]),
    );
  const lines = await watchToEnd(world, rolloutId);
  assert.ok(lines.includes("container_service/web SUCCEEDED 1000/1000 ready"), lines.at(-1));
  const uids = agents.flatMap((agent) => [...agent.assignments.keys()]);
  assert.equal(uids.length, 1000);
  assert.equal(new Set(uids).size, 1000);
  await world.operator().delete({ namespace: "shop", resources: [], labels: {}, all: true });
  await until(
    "all are gone",
    async () => (await world.operator().listResources(ALL)).resources.length === 0,
    30_000,
  );
  await until("the agents know", () => agents.every((agent) => agent.assignments.size === 0));
});

async function applied(world: World, request: ReturnType<typeof aRequest>): Promise<void> {
  const { rolloutId } = await world.forage().applyResources(request);
  for await (const event of world.forage().watchRollout({ rolloutId }))
    assert.doesNotMatch(describeEvent(event), /FAILED/);
}

async function refused(call: Promise<unknown>): Promise<ServiceError> {
  return call.then(
    () => assert.fail("it was not refused"),
    (error: ServiceError) => error,
  );
}

function fieldsOf({ metadata }: ServiceError): string[] {
  const [details] = metadata.get("grpc-status-details-bin");
  const { details: any } = Status.decode(details as Buffer);
  assert.equal(any[0]?.typeUrl, "type.googleapis.com/google.rpc.BadRequest");
  return BadRequest.decode(any[0].value).fieldViolations.map(({ field }) => field);
}
