import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type Resource, RouteState } from "@forage/proto/forage/operator/v1/operator";
import { aNode, aResource } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {};
});

const WELL = [
  { type: "Accepted", status: true, reason: "Accepted" },
  { type: "ResolvedRefs", status: true, reason: "ResolvedRefs" },
  { type: "Programmed", status: true, reason: "Programmed" },
];
const HIDDEN = {
  type: "Conflicted",
  status: true,
  reason: "MatchShadowed",
  message: "rules[0] is answered by route a/b",
};
const PENDING = { type: "Programmed", status: false, reason: "Pending", message: "0 of 1 gateways serve it" };

test("lists routes and those of services, with the first problem", async () => {
  const app = { hostname: "app.org", tls: "Terminate" };
  fake.answers.listResources = () => ({
    resources: [
      aRoute("front", { hostnames: [app, { hostname: "*.app.org", tls: "Terminate" }] }),
      aRoute("late", { hostnames: [{ hostname: "*" }], conditions: [...WELL.slice(0, 2), HIDDEN, PENDING] }),
      { ...aRoute("web", { hostnames: [app] }), kind: "service" },
      aResource({ kind: "service", name: "inside" }),
    ],
  });
  assert.deepEqual((await forage("route ls")).stdout.split("\n"), [
    "ROUTE        HOSTNAMES          TLS        GATEWAY  STATUS          AGE  WHY",
    "route/front  app.org,*.app.org  Terminate  default  Programmed     2h2m  -",
    "route/late   *                  -          default  MatchShadowed  2h2m  rules[0] is answered by route a/b",
    "service/web  app.org            Terminate  default  Programmed     2h2m  -",
    "",
  ]);
  const { stdout } = await forage("get routes");
  assert.match(stdout, /^route +front +Programmed +- +app\.org,\*\.app\.org /m);
  assert.match(stdout, /^route +late +MatchShadowed /m);
});

test("describes a route with its conditions, hostnames and gateways", async () => {
  const route = {
    conditions: [...WELL.slice(0, 2), PENDING],
    hostnames: [
      {
        hostname: "app.org",
        tls: "Terminate",
        certificate: "secret/shop/app",
        certificateExpiresAt: { seconds: 1_800_000_000n },
        matches: 3,
        matchesInForce: 2,
      },
    ],
    gateways: [{ node: "g1", ready: true, inForce: false, message: "the newest routes are not applied yet" }],
  };
  fake.answers.listPods = () => ({ kept: [], pods: [] });
  fake.answers.listResources = () => ({ resources: [aRoute("front", route)] });
  const { stdout } = await forage("describe route/front");
  assert.match(stdout, /^Ready: +Pending$/m);
  assert.match(stdout, /^ *Programmed +no +Pending +0 of 1 gateways serve it$/m);
  assert.match(stdout, /^ *app\.org +Terminate +secret\/shop\/app +2027-01-15\S+ +2\/3$/m);
  assert.match(stdout, /^Gateway "default"/m);
  assert.match(stdout, /^ *g1 +yes +no +the newest routes are not applied yet$/m);
  fake.answers.listResources = () => ({ resources: [aRoute("front", { gateways: [] })] });
  assert.match((await forage("describe route/front")).stdout, /no node is gateway "default"/);
});

test("labels a node, and shows its state as a gateway", async () => {
  const gateway = { name: "edge", ready: true, upToDate: false, message: "", proxyVersion: "1.40.0" };
  fake.answers = {
    updateNode: () => ({ node: aNode() }),
    listPods: () => ({ kept: [], pods: [] }),
    listNodes: () => ({ nodes: [aNode({ gateway })] }),
  };
  const { exitCode } = await forage("node label n1 forage.dev/gateway=edge rack=r7,row=2 old-");
  assert.equal(exitCode, 0);
  assert.deepEqual(fake.requests("updateNode"), [
    {
      name: "n1",
      unschedulable: undefined,
      setTaints: [],
      removeTaints: [],
      setLabels: { "forage.dev/gateway": "edge", rack: "r7", row: "2" },
      removeLabels: ["old"],
    },
  ]);
  const refused = await forage("node label n1 rack");
  assert.match(refused.stderr, /"rack" is not KEY=VALUE or KEY-/);
  assert.equal(refused.exitCode, 1);
  const { stdout } = await forage("describe node/n1");
  assert.match(stdout, /^Gateway: +edge: ready, not up to date, Envoy 1\.40\.0$/m);
});

function aRoute(name: string, route: Parameters<typeof RouteState.fromPartial>[0]): Resource {
  const state = RouteState.fromPartial({
    gateway: "default",
    conditions: WELL,
    hostnames: [{ hostname: "*" }],
    gateways: [{ node: "g1", ready: true, inForce: true }],
    ...route,
  });
  return { ...aResource({ kind: "route", name, rolloutId: "" }), route: state };
}
