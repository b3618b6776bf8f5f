import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { PlanResponse, Revision } from "@forage/proto/forage/operator/v1/operator";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { aRollout } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { anEvent, rollout } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });
const WEB = { namespace: "shop", kind: "container_service", name: "web" };
const { ROLLED_BACK, SUCCEEDED } = RolloutStatus;

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {};
});

test("lists revisions, newest first, or shows one", async () => {
  const image = (name: string) => {
    const value = { container: { name: "main", image: name } };
    return { name: "web", spec: { $case: "containerService", value } } as const;
  };
  const revisions = [
    Revision.fromPartial({ number: 3, pods: 1, changeCause: "Try it", spec: image("app:v3") }),
    Revision.fromPartial({ number: 2, good: true, inForce: true, pods: 2, spec: image("app:v2") }),
  ];
  fake.answers.listRevisions = () => ({ revisions });
  const { stdout } = await forage("rollout history cs/web -n shop");
  assert.deepEqual(stdout.split("\n"), [
    "REVISION  GOOD  EFFECTIVE  PODS  AGE  IMAGE   CHANGE CAUSE",
    "       3  no    -             1    -  app:v3  Try it",
    "       2  yes   yes           2    -  app:v2  -",
    "",
  ]);
  assert.deepEqual(fake.requests("listRevisions"), [WEB]);
  assert.match((await forage("rollout history cs/web --revision 3")).stdout, /image: app:v3/);
  const unknown = await forage("rollout history cs/web --revision 9");
  assert.deepEqual([unknown.exitCode, unknown.stderr.includes("has no revision 9; it has 3, 2")], [1, true]);
  assert.equal((await forage("rollout history cs/web --revision x")).exitCode, 1);
});

test("follows undo and restart to their end", async () => {
  fake.answers = {
    ...rollout([anEvent(SUCCEEDED)], aRollout([{}])),
    updateRollout: () => ({ rolloutId: "r-1", message: "undone to revision 2" }),
  };
  assert.equal((await forage("rollout undo cs/web -n shop --to-revision 2")).exitCode, 0);
  assert.equal((await forage("rollout undo cs/web -n shop")).exitCode, 0);
  const bad = aRollout([{ status: ROLLED_BACK, message: "rolled back to revision 1" }]);
  fake.answers = { ...fake.answers, ...rollout([anEvent(ROLLED_BACK)], bad) };
  assert.equal((await forage("rollout restart cs/web -n shop")).exitCode, 3);
  const { stdout } = await forage("rollout undo cs/web -n shop --detach");
  assert.equal(stdout, "cs/web undone to revision 2: rollout r-1\n");
  assert.deepEqual(fake.requests("updateRollout"), [
    { ...WEB, action: { $case: "undo", value: { toRevision: 2 } } },
    { ...WEB, action: { $case: "undo", value: { toRevision: 0 } } },
    { ...WEB, action: { $case: "restart", value: {} } },
    { ...WEB, action: { $case: "undo", value: { toRevision: 0 } } },
  ]);
});

test("shows the effect of an undo with --dry-run, and changes nothing", async () => {
  const change = { path: "container_service.container.image", before: "app:v2", after: "app:v1" };
  fake.answers.plan = () =>
    PlanResponse.fromPartial({
      changes: true,
      resources: [
        {
          ...{ kind: "container_service", name: "web", action: "update", changes: [change] },
          steps: [{ round: 1, step: "create-pods", count: 1, why: "new revision" }],
          notes: ["undone to revision 1"],
        },
      ],
    });
  const { stdout, exitCode } = await forage("rollout undo cs/web -n shop --to-revision 1 --dry-run");
  assert.equal(exitCode, 0);
  assert.deepEqual(stdout.split("\n"), [
    "~ container_service/web  update",
    '    ~ container_service.container.image: "app:v2" → "app:v1"',
    "    1.   create-pods 1: new revision",
    "    undone to revision 1",
    "",
  ]);
  const action = { $case: "undo", value: { toRevision: 1 } };
  assert.deepEqual(fake.requests("plan"), [
    { namespace: "shop", bundle: undefined, rollout: { ...WEB, action } },
  ]);
  assert.deepEqual(fake.requests("updateRollout"), []);
});

test("pauses, resumes and promotes a rollout", async () => {
  fake.answers.updateRollout = ({ action }) => ({ rolloutId: "r-1", message: `${action?.$case}d` });
  const { stdout, exitCode } = await forage("rollout pause cs/web -n shop");
  assert.deepEqual([stdout, exitCode], ["cs/web paused: rollout r-1\n", 0]);
  assert.equal((await forage("rollout resume cs/web -n shop -o name")).stdout, "r-1\n");
  assert.equal(JSON.parse((await forage("rollout promote cs/web -n shop -o json")).stdout).rolloutId, "r-1");
  assert.deepEqual(
    fake.requests("updateRollout"),
    ["pause", "resume", "promote"].map(($case) => ({ ...WEB, action: { $case, value: {} } })),
  );
  fake.answers.updateRollout = () => {
    throw grpcError(status.FAILED_PRECONDITION, "container_service/web is not paused");
  };
  const refused = await forage("rollout resume cs/web");
  assert.equal(refused.exitCode, 1);
  assert.match(refused.stderr, /is not paused/);
});
