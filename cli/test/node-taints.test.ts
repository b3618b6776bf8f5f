import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { aNode } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });
const NOTHING = { name: "n1", setTaints: [], removeTaints: [], setLabels: {}, removeLabels: [] };

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = { updateNode: () => ({ node: aNode({ name: "n1", unschedulable: true }) }) };
});

test("cordons and uncordons a node", async () => {
  const { stdout, exitCode } = await forage("node cordon n1");
  assert.match(stdout, /n1 .*Unschedulable/);
  assert.equal(exitCode, 0);
  await forage("node uncordon n1");
  assert.deepEqual(
    fake.requests("updateNode"),
    [true, false].map((unschedulable) => ({ ...NOTHING, unschedulable })),
  );
});

test("sets and removes taints of a node", async () => {
  await forage("node taint n1 example.com/gpu=yes:NoSchedule broken:NoExecute");
  await forage("node untaint n1 broken example.com/gpu:NoSchedule");
  assert.deepEqual(fake.requests("updateNode"), [
    {
      ...NOTHING,
      unschedulable: undefined,
      setTaints: [
        { key: "example.com/gpu", value: "yes", effect: "NoSchedule" },
        { key: "broken", value: "", effect: "NoExecute" },
      ],
    },
    {
      ...NOTHING,
      unschedulable: undefined,
      removeTaints: [
        { key: "broken", value: "", effect: "" },
        { key: "example.com/gpu", value: "", effect: "NoSchedule" },
      ],
    },
  ]);
});

test("refuses an invalid taint before anything is sent", async () => {
  for (const text of ["gpu", "gpu=yes", "=yes:NoSchedule", "gpu:"]) {
    const { stderr, exitCode } = await forage(`node taint n1 ${text}`);
    assert.match(stderr, /is not KEY=VALUE:EFFECT/, text);
    assert.equal(exitCode, 1);
  }
  assert.match((await forage("node untaint n1 gpu=yes:NoSchedule")).stderr, /is not KEY or KEY:EFFECT/);
  assert.deepEqual(fake.calls, []);
});
