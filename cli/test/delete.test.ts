import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { aResource } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { HELLO } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string, stdin?: string, signal?: AbortSignal): Promise<Result> =>
  runCommand(line.split(" "), {
    env: fake.env,
    ...(stdin !== undefined && { stdin }),
    ...(signal && { signal }),
  });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {};
});

describe("delete", () => {
  const all = [aResource({ namespace: "shop" }), aResource({ namespace: "shop", kind: "service" })];
  beforeEach(() => {
    fake.answers.listResources = () => ({ resources: all });
    fake.answers.delete = ({ namespace, resources }) => ({
      deleted: resources.length > 0 ? resources : all.map(({ kind, name }) => ({ namespace, kind, name })),
    });
  });

  test("deletes resources by name", async () => {
    const { stdout, exitCode } = await forage("delete cs/web svc/front -n shop -o name");
    assert.deepEqual([exitCode, stdout], [0, "container_service/web\nservice/front\n"]);
    assert.deepEqual(fake.requests("delete"), [
      {
        namespace: "shop",
        resources: [
          { namespace: "shop", kind: "container_service", name: "web" },
          { namespace: "shop", kind: "service", name: "front" },
        ],
        labels: {},
        all: false,
      },
    ]);
  });

  test("deletes resources by labels", async () => {
    await forage("delete -l app=web -l tier=front -n shop");
    assert.deepEqual(fake.requests("delete"), [
      { namespace: "shop", resources: [], labels: { app: "web", tier: "front" }, all: false },
    ]);
  });

  test("deletes resources by name if the coordinator does not evaluate the selector", async () => {
    const labelled = [
      aResource({ labels: { app: "web" } }),
      aResource({ name: "api", labels: { app: "api" } }),
    ];
    fake.answers.listResources = () => ({ resources: labelled });
    await forage("delete -l tier=front,app!=web -n shop");
    assert.deepEqual(fake.requests("listResources"), [
      { namespace: "shop", labels: { tier: "front" }, kind: undefined, name: undefined },
    ]);
    assert.deepEqual(fake.requests("delete"), [
      {
        namespace: "shop",
        resources: [{ namespace: "shop", kind: "container_service", name: "api" }],
        labels: {},
        all: false,
      },
    ]);
    assert.match((await forage("delete -l app=web,!app")).stderr, /there was nothing left to delete/);
    assert.equal(fake.requests("delete").length, 1);
  });

  test("deletes the resources of a manifest, and ignores missing ones", async () => {
    const { exitCode } = await forage("delete -f -", `${HELLO}  - {name: gone, service: {}}\n`);
    assert.equal(exitCode, 0);
    const [request] = fake.requests("delete") as {
      namespace: string;
      resources: { kind: string; name: string }[];
    }[];
    assert.deepEqual(
      [request?.namespace, request?.resources.map(({ kind, name }) => `${kind}/${name}`)],
      ["shop", ["container_service/web", "service/web"]],
    );
  });

  test("deletes everything only after a confirmation", async () => {
    const { exitCode, stderr } = await forage("delete --all -n shop");
    assert.equal(exitCode, 1);
    assert.match(stderr, /there is no terminal for the confirmation: repeat the command with --yes/);
    assert.deepEqual(fake.requests("delete"), []);
    assert.equal((await forage("delete --all --yes -n shop")).exitCode, 0);
    assert.deepEqual(fake.requests("delete"), [{ namespace: "shop", resources: [], labels: {}, all: true }]);
  });

  test("requires exactly one way to select resources", async () => {
    for (const line of ["delete", "delete cs/web --all", "delete -l a=b --all", "delete cs/web -l a=b"]) {
      assert.match((await forage(line)).stderr, /give exactly one of/, line);
    }
    assert.match((await forage("delete web")).stderr, /"web" is not KIND\/NAME/);
    assert.match((await forage("delete -l app>1")).stderr, /"app>1" is not a selector/);
    assert.deepEqual(fake.calls, []);
  });

  test("waits with --wait until all resources are deleted", async () => {
    let looks = 0;
    fake.answers.listResources = () => ({
      resources: looks++ < 2 ? [aResource({ namespace: "shop", deleting: true })] : [],
    });
    assert.equal((await forage("delete cs/web -n shop --wait")).exitCode, 0);
    assert.equal(looks, 3);
    looks = -1e9;
    assert.equal((await forage("delete cs/web -n shop --wait --timeout 500ms")).exitCode, 4);
  });
});
