import assert from "node:assert/strict";
import { test } from "node:test";
import { ListEventsRequest, PodPolicy } from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const IN_SHOP = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };
const CONTAINER = {
  name: "main",
  image: "registry.example/team/app:v1",
  securityContext: { capabilities: { add: ["NET_ADMIN"] } },
};

function aCronJob(name: string): ForageResource {
  const value = { schedule: "* * * * *", container: CONTAINER };
  return ForageResource.fromPartial({ name, spec: { $case: "cronJob", value } } as object);
}

async function setCapabilities(world: World, role: string, capabilities: readonly string[]) {
  const policy = PodPolicy.fromPartial({ role, profile: "baseline", capabilities: [...capabilities] });
  const { namespace } = await world
    .operator()
    .setNamespacePolicy({ namespace: "shop", policy, remove: false });
  return namespace?.violations.map(({ kind, name, field }) => `${kind}/${name} ${field}`).sort();
}

async function runsOf(world: World, cronJob: string): Promise<number> {
  const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
  return resources.filter(({ kind, name }) => kind === "job" && name.startsWith(`${cronJob}-`)).length;
}

async function messagesOf(world: World, name: string, reason: string): Promise<string[]> {
  const request = ListEventsRequest.fromPartial({
    namespace: "shop",
    filter: { kind: "cron_job", name, reason },
  });
  const { events } = await world.operator().listEvents(request);
  return events.map(({ message }) => message);
}

test(
  "stops no pod after a policy was tightened, reports violations, and refuses further runs of cron jobs",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    await HollowAgent.start(world);
    const editor = await world.token("editor", ["shop"]);
    const admin = await world.token("admin");
    assert.deepEqual(await setCapabilities(world, "", ["NET_ADMIN"]), []);
    const bundle = aRequest("a1", [aContainerService("web", { container: CONTAINER }), aCronJob("mine")]);
    const { rolloutId } = await world.forage(editor).applyResources(bundle);
    await watchToEnd(world, rolloutId);
    const global = { ...aRequest("a2", [aCronJob("global")]), labels: { by: "operator" } };
    await world.forage(admin).applyResources(global);
    const pods = (await world.operator().listPods(IN_SHOP)).pods.map(({ name }) => name);

    const field = "container.security_context.capabilities.add[0]";
    assert.deepEqual(await setCapabilities(world, "", []), [
      `container_service/web container_service.${field}`,
      `cron_job/mine cron_job.${field}`,
    ]);
    for (const [kind, name] of [
      ["container_service", "web"],
      ["pod", pods[0] ?? ""],
      ["cron_job", "mine"],
    ] as const) {
      const { causes } = await world.operator().why({ namespace: "shop", kind, name });
      const found = causes.find(({ reason }) => reason === "PolicyViolated");
      assert.match(
        found?.message ?? "",
        /violates the policy of its namespace: .*NET_ADMIN/,
        `${kind}/${name}`,
      );
    }
    const runs = await runsOf(world, "mine");
    const before = await runsOf(world, "global");
    world.clock.skip(60_000);
    await until("the policy of global tokens still allows their runs", async () => {
      return (await runsOf(world, "global")) > before;
    });
    await until(
      "the run is refused",
      async () => (await messagesOf(world, "mine", "CronRunRefused")).length > 0,
    );
    const [message] = await messagesOf(world, "mine", "CronRunRefused");
    assert.match(
      message ?? "",
      /is not started: cron_job\.container\.security_context\.capabilities\.add\[0\]: the policy/,
    );
    assert.equal(await runsOf(world, "mine"), runs);
    const after = (await world.operator().listPods({ ...IN_SHOP, workload: "web" })).pods;
    assert.ok(after.every(({ name }) => pods.includes(name)));

    await setCapabilities(world, "", ["NET_ADMIN"]);
    world.clock.skip(60_000);
    await until("runs start again", async () => (await runsOf(world, "mine")) > runs);
  },
);
