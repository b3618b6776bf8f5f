import assert from "node:assert/strict";
import { test } from "node:test";
import {
  GetObjectRequest,
  ListEventsRequest,
  PlanRequest,
  PutObjectRequest,
  RunCronJobRequest,
  UpdateRolloutRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { type ServiceError, status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, aRoute, aService, watchToEnd } from "./support/requests.ts";
import { collected } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

/**
 * An attacker with an editor's token for the namespace shop chooses names to reach another
 * namespace.
 */

const LIMIT = { timeout: 120_000 };
const REFUSALS: ReadonlySet<number> = new Set([
  status.PERMISSION_DENIED,
  status.INVALID_ARGUMENT,
  status.NOT_FOUND,
  status.UNIMPLEMENTED,
]);

async function refused(what: string, call: Promise<unknown>): Promise<void> {
  const outcome = await call.then(
    (answer) =>
      `allowed: ${JSON.stringify(answer, (_key, it) => (typeof it === "bigint" ? String(it) : it))}`,
    (error: ServiceError) => (REFUSALS.has(error.code) ? "refused" : `${error.code} ${error.details}`),
  );
  assert.equal(outcome, "refused", what);
}

const odd = [
  "other",
  "shop/../other",
  "../other",
  "shop/",
  "other/",
  "*",
  "",
  "Other",
  "other ",
  "other\0",
  "shop\0other",
  "оther",
  "x".repeat(100_000),
  "__proto__",
];

test("lets no form of a namespace's name give an editor access to another namespace", LIMIT, async (t) => {
  const world = await startWorld(t);
  const editor = await world.token("editor", ["shop"]);
  const [forage, operator] = [world.forage(editor), world.operator(editor)];
  for (const namespace of odd) {
    const name = JSON.stringify(namespace.slice(0, 30));
    await refused(
      `apply ${name}`,
      forage.applyResources({ ...aRequest("a", [aContainerService("x")]), namespace }),
    );
    await refused(`delete ${name}`, forage.deleteResources({ namespace, labels: { a: "b" } }));
    await refused(`events ${name}`, operator.listEvents(ListEventsRequest.fromPartial({ namespace })));
    await refused(
      `get ${name}`,
      operator.getObject(GetObjectRequest.fromPartial({ namespace, kind: "secret", name: "db" })),
    );
    await refused(`why ${name}`, operator.why({ namespace, kind: "container_service", name: "web" }));
    const path = `web.${namespace}.svc.cluster.local`;
    await refused(
      `look-up ${name}`,
      collected(world.destination(editor).get({ scheme: "", path, contextToken: `ns:${namespace}` })),
    );
  }
});

test("refuses names with separators, uids and ids of another namespace", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const editor = await world.token("editor", ["shop"]);
  const viewer = await world.token("viewer", ["shop"]);
  const theirs = { ...aRequest("a1", [aContainerService("web")]), namespace: "other" };
  const { rolloutId } = await world.forage().applyResources(theirs);
  await watchToEnd(world, rolloutId);
  const { pods } = await world
    .operator()
    .listPods({ namespace: "other", labels: {}, workload: "", node: "", name: "" });
  const [pod] = pods;
  assert.ok(pod !== undefined);
  const operator = world.operator(editor);
  const data = { data: { a: Buffer.from("b") } };
  for (const name of [pod.name, pod.uid, `../other/${pod.name}`, `other/${pod.name}`, pod.uid.slice(0, 8)]) {
    await refused(
      `logs ${name}`,
      collected(operator.logs({ namespace: "shop", pod: name, container: "", options: undefined })),
    );
    await refused(`why ${name}`, operator.why({ namespace: "shop", kind: "pod", name }));
    const exec = operator.exec();
    exec.on("error", () => {});
    exec.write({
      frame: { $case: "start", value: { namespace: "shop", pod: name, container: "", options: undefined } },
    });
    await refused(`exec ${name}`, collected(exec));
  }
  for (const name of [
    "../other/web",
    "web/../../other",
    "other/web",
    "..",
    "",
    "a/b",
    "wéb",
    "x".repeat(10_000),
  ]) {
    const undo = UpdateRolloutRequest.fromPartial({
      namespace: "shop",
      kind: "container_service",
      name,
      action: { $case: "restart", value: {} },
    } as object);
    await refused(`rollout ${name}`, operator.updateRollout(undo));
    await refused(
      `run ${name}`,
      operator.runCronJob(RunCronJobRequest.fromPartial({ namespace: "shop", cronJob: name })),
    );
    await refused(
      `apply ${name}`,
      world.forage(editor).applyResources(aRequest("n", [aContainerService(name)])),
    );
    const object = { namespace: "shop", name, spec: { $case: "secret", value: data } };
    await refused(
      `object ${name}`,
      operator.putObject(PutObjectRequest.fromPartial({ namespace: "shop", object } as object)),
    );
    const claim = {
      container: { name: "main", image: "registry.example/a:1" },
      volumes: [{ name: "v", source: { $case: "pvc", value: { claimName: name } } }],
    };
    await refused(
      `claim ${name}`,
      world.forage(editor).applyResources(aRequest("c", [aContainerService("c", claim)])),
    );
  }
  await refused("rollout by id", operator.getRollout({ by: { $case: "rolloutId", value: rolloutId } }));
  await refused("watch by id", collected(world.forage(editor).watchRollout({ rolloutId })));
  const plan = PlanRequest.fromPartial({ request: theirs } as object);
  await refused("plan for another namespace", operator.plan(plan));
  for (const path of ["10.64.0.1:8080", "web.other.svc.cluster.local:80", "WEB.OTHER.svc.cluster.local"])
    await refused(
      `look-up ${path}`,
      collected(world.destination(viewer).get({ scheme: "", path, contextToken: '{"ns":"other"}' })),
    );
});

test("does not let a route use a hostname of another namespace", LIMIT, async (t) => {
  const world = await startWorld(t);
  const editor = await world.token("editor", ["shop"]);
  const services = [aService("web", "web")];
  const theirs = aRoute("front", { hostnames: ["www.other.example", "*.apps.example"] });
  await world.forage().applyResources({ ...aRequest("a1", [...services, theirs]), namespace: "other" });
  const steal = (hostnames: string[], more: object = {}) =>
    world
      .forage(editor)
      .applyResources(
        aRequest(`s-${hostnames.join("-")}`, [...services, aRoute("mine", { hostnames, ...more })]),
      );
  for (const hostname of ["www.other.example", "a.apps.example", "*.b.apps.example", "*.apps.example"]) {
    await assert.rejects(steal([hostname], { priority: 1000 }), {
      code: status.INVALID_ARGUMENT,
      details: /resources\[1\]\.route\.hostnames\[0\]: .* belongs to namespace "other"/,
    });
    const inline = aService("web", "web");
    if (inline.spec?.$case === "service")
      Object.assign(inline.spec.value, { inlineRoute: { hostnames: [hostname], rules: [] } });
    await assert.rejects(world.forage(editor).applyResources(aRequest("i", [inline])), {
      details: /service\.inline_route\.hostnames\[0\]: .* belongs to namespace "other"/,
    });
  }
  await steal(["shop.example", "apps.example"]);
  await world.forage().applyResources({
    ...aRequest("a2", [...services, aRoute("late", { hostnames: ["shop.example"] })], { by: "operator" }),
    namespace: "third",
  });
  await steal(["shop.example"]);
});
