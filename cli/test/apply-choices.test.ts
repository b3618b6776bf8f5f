import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Resource, RouteState } from "@forage/proto/forage/operator/v1/operator";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { aResource, aRollout } from "./builders.ts";
import { type Answers, FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { anEvent, HELLO, rollout } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
let manifest = "";

before(async () => {
  fake = await FakeCoordinator.start();
  manifest = join(fake.dir, "hello.yaml");
  writeFileSync(manifest, HELLO);
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
});

const through = (): Answers => rollout([anEvent(RolloutStatus.SUCCEEDED)], aRollout([{}]));
const methods = (): string[] => fake.calls.map(({ method }) => method);

describe("resources that the manifests no longer name", () => {
  const others = [
    aResource({ namespace: "shop", name: "web" }),
    aResource({ namespace: "shop", name: "old" }),
    aResource({ namespace: "shop", kind: "job", name: "run-1", owner: "cron_job/run" }),
    aResource({ namespace: "shop", kind: "service", name: "gone", deleting: true }),
  ];
  beforeEach(() => {
    fake.answers = {
      ...through(),
      apply: () => ({ rolloutId: "r-1" }),
      listResources: () => ({ resources: others }),
    };
  });

  test("lists resources to remove on a terminal, and removes them after a yes", async () => {
    const { exitCode, stderr } = await onTerminal("y\n");
    assert.equal(exitCode, 0);
    assert.match(
      stderr,
      /^the manifests do not name these resources[^\n]*\n {2}shop container_service\/old\nRemove it from coordinator [\d.:]+\? /,
    );
    assert.deepEqual(fake.requests("listResources"), [
      { namespace: "shop", labels: { app: "web" }, kind: undefined, name: undefined },
    ]);
    assert.deepEqual(agreedRemovals(), [[{ namespace: "shop", kind: "container_service", name: "old" }]]);
  });

  test("does not remove a resource that appears after the question", async () => {
    const apply = () => {
      throw grpcError(status.FAILED_PRECONDITION, "the apply would also remove job/late; apply again");
    };
    fake.answers = { ...fake.answers, apply };
    const { exitCode, stderr } = await onTerminal("y\n");
    assert.equal(exitCode, 1);
    assert.match(stderr, /would also remove job\/late; apply again/);
    assert.deepEqual(fake.requests("applyResources"), []);
  });

  test("applies nothing after any other answer", async () => {
    for (const answer of ["n\n", ""]) {
      const { exitCode, stderr } = await onTerminal(answer);
      assert.equal(exitCode, 1);
      assert.match(stderr, /nothing was applied; --prune=no applies the manifests and removes nothing\n$/);
    }
    assert.deepEqual([...fake.requests("applyResources"), ...fake.requests("apply")], []);
  });

  test("asks nothing if no resource would be removed", async () => {
    fake.answers = { ...fake.answers, listResources: () => ({ resources: others.slice(0, 1) }) };
    const { exitCode, stderr } = await onTerminal("");
    assert.deepEqual([exitCode, stderr.includes("Remove")], [0, false]);
    assert.deepEqual(agreedRemovals(), [[]]);
  });

  test("removes without a question without a terminal, or with --prune=yes", async () => {
    for (const run of [() => plain("apply", "-f", "-"), () => onTerminal("", "--prune=yes")]) {
      assert.equal((await run()).exitCode, 0);
      assert.ok(!methods().includes("listResources") && methods().includes("applyResources"));
    }
  });

  test("removes nothing with --prune=no", async () => {
    assert.equal((await plain("apply", "-f", "-", "--prune=no")).exitCode, 0);
    assert.deepEqual(fake.requests("applyResources"), []);
    const [request] = fake.requests("apply") as {
      namespace: string;
      keepOthers: boolean;
      bundle: { applyId: string };
    }[];
    assert.deepEqual(
      [request?.namespace, request?.keepOthers, request?.bundle.applyId],
      ["shop", true, "random-id"],
    );
  });

  test("refuses --prune=no at a coordinator that does not support it", async () => {
    const apply = () => {
      throw grpcError(status.UNIMPLEMENTED, "the server does not implement the method Apply");
    };
    fake.answers = { ...fake.answers, apply };
    const { exitCode, stderr } = await plain("apply", "-f", "-", "--prune=no");
    assert.equal(exitCode, 1);
    assert.match(stderr, /can't do this/);
    assert.deepEqual(fake.requests("applyResources"), []);
  });

  test("refuses --prune with other values than yes and no", async () => {
    const { exitCode, stderr } = await plain("apply", "-f", "-", "--prune=maybe");
    assert.deepEqual([exitCode, stderr], [1, 'forage: --prune is yes or no, not "maybe"\n']);
  });
});

describe("apply --strict", () => {
  const serving = aResource({ namespace: "shop", kind: "service", name: "web", readyEndpoints: 2 });

  test("waits until the services are served", async () => {
    let looks = 0;
    const resources = () => [looks++ === 0 ? { ...serving, readyEndpoints: 0 } : serving];
    fake.answers = { ...through(), listResources: () => ({ resources: resources() }) };
    assert.equal((await plain("apply", "-f", "-", "--strict")).exitCode, 0);
    assert.equal(looks, 2);
  });

  const route = (state?: Resource["route"]) =>
    aResource({ namespace: "shop", kind: "route", name: "site", route: state });
  const conditions = [{ type: "Accepted", status: false, reason: "HostnameTaken" }];
  for (const [what, resources, expected] of [
    [
      "a service's message",
      [{ ...serving, message: "PortNotFound: port 80 is not published" }, route(RouteState.fromPartial({}))],
      "service/web: PortNotFound: port 80 is not published; forage why service/web -n shop",
    ],
    [
      "a route without a gateway",
      [serving, route()],
      "route/site: no gateway has applied it; forage why route/site -n shop",
    ],
    [
      "a route's unmet condition",
      [serving, route(RouteState.fromPartial({ conditions }))],
      "route/site: its route: HostnameTaken; forage why route/site -n shop",
    ],
    ["a missing route", [serving], "route/site: it does not exist; forage why route/site -n shop"],
  ] as const)
    test(`fails with the resources that are not served and the reasons: ${what}`, async () => {
      fake.answers = { ...through(), listResources: () => ({ resources: [...resources] }) };
      let passedMs = 0;
      const { exitCode, stderr } = await runCommand(["apply", "-f", "-", "--strict"], {
        env: fake.env,
        stdin: `${HELLO}  - {name: site, route: {rules: [{backends: [{service: web, port: 80}]}]}}\n`,
        nowMs: () => {
          passedMs += 30_000;
          return Date.now() + passedMs;
        },
      });
      assert.equal(exitCode, 1);
      assert.ok(stderr.endsWith(`not serving:\n  ${expected}\n`), stderr);
    });

  test("refuses --strict with --detach", async () => {
    const { exitCode, stderr } = await plain("apply", "-f", "-", "--strict", "--detach");
    assert.equal(exitCode, 1);
    assert.match(stderr, /leave one out/);
  });
});

/** Returns the removals to which the user has agreed in each apply. */
function agreedRemovals(): unknown[] {
  const requests = fake.requests("apply") as { agreedRemovals?: { resources: unknown[] } }[];
  return requests.map((request) => request.agreedRemovals?.resources);
}

function plain(...argv: readonly string[]): Promise<Result> {
  return runCommand(argv, { env: fake.env, stdin: HELLO });
}

function onTerminal(answer: string, ...more: readonly string[]): Promise<Result> {
  const input = Object.assign(Readable.from(answer === "" ? [] : [answer]), { isTTY: true });
  return runCommand(["apply", "-f", manifest, ...more], { env: fake.env, input });
}
