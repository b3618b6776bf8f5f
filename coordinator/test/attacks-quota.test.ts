import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ListEventsRequest,
  PutObjectRequest,
  RunCronJobRequest,
  UpdateRolloutRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { type ServiceError, status } from "@grpc/grpc-js";
import { aContainerService, aJob, aRequest, aService } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

/** An attacker with an editor's token for one namespace tries to exceed its quota. */

const LIMIT = { timeout: 120_000 };
const MAIN = { name: "main", image: "registry.example/team/app:v1" };

test("refuses the field that exceeds a quota, and accepts more after a removal", LIMIT, async (t) => {
  const world = await startWorld(t);
  const editor = await world.token("editor", ["shop"]);
  await known(world, editor);
  const set = await world.operator().setNamespaceQuota({
    namespace: "shop",
    limits: { pods: "5", cpu: "1", objects: "4", bytes: "4Ki" },
    reset: false,
  });
  assert.equal(set.namespace?.defaultQuota, false);
  let applies = 0;
  const tries = async (resources: ForageResource[], token?: string, labels = {}): Promise<string> =>
    world
      .forage(token)
      .applyResources(aRequest(`q-${++applies}`, resources, labels))
      .then(
        () => "allowed",
        (error: ServiceError) => error.details,
      );
  const replicas = (name: string, count: number, cpu = "100m") =>
    aContainerService(name, {
      scaling: { replicas: count },
      container: { ...MAIN, resources: { requests: { cpu, memory: "64Mi" } } },
    });
  assert.equal(await tries([replicas("a", 3)], editor), "allowed");
  const tooMany =
    /resources\[0\]\.container_service\.scaling\.replicas: exceeds the quota of namespace "shop" for pods: 3 in use, 6 with this request, at most 5/;
  assert.match(await tries([replicas("b", 3)], editor), tooMany);
  assert.match(await tries([replicas("b", 3)]), tooMany, "an explicit quota binds every caller");
  assert.match(
    await tries([replicas("b", 2, "400m")], editor),
    /container\.resources\.requests\.cpu: exceeds/,
  );
  const silent = aContainerService("b", { scaling: { replicas: 1 }, container: MAIN });
  assert.match(
    await tries([silent], editor),
    /requests\.cpu: must be set: namespace "shop" has a quota for cpu/,
  );
  assert.equal(await tries([replicas("a", 5)], editor), "allowed");
  assert.match(
    await tries([aJob("j", { container: { ...MAIN, resources: { requests: { cpu: "1m" } } } })], editor),
    /job\.job_config\.parallelism: exceeds/,
  );
  const three = ["s1", "s2", "s3"].map((name) => aService(name, "a"));
  assert.equal(await tries(three, editor), "allowed");
  assert.match(
    await tries([aService("s4", "a")], editor),
    /resources\[0\]: exceeds the quota .* for objects/,
  );
  const object = {
    namespace: "shop",
    name: "c",
    spec: { $case: "configMap", value: { data: { a: Buffer.alloc(5000) } } },
  };
  const put = PutObjectRequest.fromPartial({ namespace: "shop", object } as object);
  await assert.rejects(world.operator(editor).putObject(put), {
    details: /object: exceeds the quota .* for objects/,
  });
  assert.equal(await tries([replicas("a", 1)], editor), "allowed", "asking for less always is");
  const reset = await world.operator().setNamespaceQuota({ namespace: "shop", limits: {}, reset: true });
  assert.equal(reset.namespace?.defaultQuota, true);
  assert.match(
    await tries([replicas("b", 2_000)], editor),
    /for pods: 1 in use, 2001 with this request, at most 1000/,
  );
  assert.equal(
    await tries([replicas("b", 2_000)]),
    "allowed",
    "defaults bind tokens limited to namespaces only",
  );
});

test("enforces a quota for concurrent requests together", LIMIT, async (t) => {
  const world = await startWorld(t);
  await world.operator().setNamespaceQuota({ namespace: "shop", limits: { pods: "4" }, reset: false });
  const forage = world.forage();
  const results = await Promise.allSettled(
    ["a", "b", "c", "d", "e"].map((name) => forage.applyResources(aRequest(name, [aContainerService(name)]))),
  );
  assert.equal(results.filter(({ status: outcome }) => outcome === "fulfilled").length, 2);
  const { namespaces } = await world.operator().listNamespaces({ namespace: "shop" });
  assert.equal(namespaces[0]?.used.pods, "4");
});

test("counts manual and scheduled runs of a cron job against the quota", LIMIT, async (t) => {
  const world = await startWorld(t);
  const editor = await world.token("editor", ["shop"]);
  await known(world, editor);
  await world.operator().setNamespaceQuota({ namespace: "shop", limits: { pods: "5" }, reset: false });
  const apply = (suspend: boolean) => {
    const cron = aCronJob("busy", { schedule: "* * * * *", suspend, jobConfig: { parallelism: 2 } });
    return world.forage(editor).applyResources(aRequest(`suspend-${suspend}`, [cron]));
  };
  await apply(true);
  const run = (name: string) =>
    world
      .operator(editor)
      .runCronJob(RunCronJobRequest.fromPartial({ namespace: "shop", cronJob: "busy", name }));
  await run("first");
  assert.equal(
    (await namespaceOf(world)).used.pods,
    "2",
    "the first run is the one that is counted all the time",
  );
  await run("second");
  const details =
    /job\.job_config\.parallelism: exceeds the quota of namespace "shop" for pods: 4 in use, 6 with this request, at most 5/;
  await assert.rejects(run("third"), { code: status.INVALID_ARGUMENT, details });
  await run("second");
  await apply(false);
  await until("the schedule skips its run", async () => {
    world.clock.skip(60_000);
    const { events } = await world
      .operator()
      .listEvents(ListEventsRequest.fromPartial({ namespace: "shop" }));
    return events.some(({ reason, message }) => reason === "CronRunSkipped" && details.test(message));
  });
  assert.equal((await namespaceOf(world)).used.pods, "4");
});

test("enforces the quota for an undo to a revision with larger requests", LIMIT, async (t) => {
  const world = await startWorld(t);
  const editor = await world.token("editor", ["shop"]);
  await known(world, editor);
  const sized = (cpu: string): ForageResource =>
    aContainerService("web", {
      scaling: { replicas: 2 },
      container: { ...MAIN, resources: { requests: { cpu, memory: "64Mi" } } },
    });
  await world.forage(editor).applyResources(aRequest("u1", [sized("2")]));
  await world.forage(editor).applyResources(aRequest("u2", [sized("100m")]));
  await world.operator().setNamespaceQuota({ namespace: "shop", limits: { cpu: "1" }, reset: false });
  const undo = UpdateRolloutRequest.fromPartial({
    ...{ namespace: "shop", kind: "container_service", name: "web" },
    action: { $case: "undo", value: { toRevision: 1 } },
  });
  await assert.rejects(world.operator(editor).updateRollout(undo), {
    code: status.INVALID_ARGUMENT,
    details: /container_service\.container\.resources\.requests\.cpu: exceeds the quota .* at most 1/,
  });
});

function aCronJob(name: string, spec: object): ForageResource {
  const value = { schedule: "@yearly", container: MAIN, ...spec };
  return ForageResource.fromPartial({ name, spec: { $case: "cronJob", value } } as object);
}

async function known(world: World, ...tokens: readonly string[]): Promise<void> {
  for (const token of tokens)
    await until("the token is known", () =>
      world
        .operator(token)
        .listResources({ namespace: "shop", labels: {} })
        .then(
          () => true,
          () => false,
        ),
    );
}

async function namespaceOf(world: World) {
  const { namespaces } = await world.operator().listNamespaces({ namespace: "shop" });
  const [found] = namespaces;
  assert.ok(found);
  return found;
}
