import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { ago, aRollout } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { anEvent, rollout } from "./rollout.ts";
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

const { PENDING, SUCCEEDED, FAILED } = RolloutStatus;

describe("rollout status", () => {
  test("shows a rollout by id and by resource, and exits like apply once it has ended", async () => {
    fake.answers.getRollout = () =>
      aRollout([{ status: FAILED, reason: "unschedulable", message: "no node fits" }]);
    const { exitCode, stdout } = await forage("rollout status r-1");
    assert.equal(exitCode, 2);
    assert.deepEqual(stdout.split("\n"), [
      "KIND               NAME  ACTION  STATUS  MESSAGE",
      "container_service  web   create  failed  no node fits",
      "rollout r-1 not placed: container_service/web (1 of 1 resource)",
      "",
    ]);
    await forage("rollout status cs/web -n shop");
    assert.deepEqual(fake.requests("getRollout"), [
      { by: { $case: "rolloutId", value: "r-1" } },
      { by: { $case: "resource", value: { namespace: "shop", kind: "container_service", name: "web" } } },
    ]);
  });

  test("shows when a rollout ended, and the present state of its resources", async () => {
    fake.answers.getRollout = () =>
      aRollout([{ message: "2/2 ready", finishedAt: ago(3 * 3600), now: "0/2 ready" }]);
    const { stdout } = await forage("rollout status r-1");
    assert.deepEqual(stdout.split("\n"), [
      "KIND               NAME  ACTION  STATUS  MESSAGE    NOW",
      "container_service  web   create  done    2/2 ready  0/2 ready",
      "rollout r-1 done: 1 resource, ended 3h ago",
      "",
    ]);
  });

  test("exits with 0 during a rollout, or follows it with --watch", async () => {
    const going = aRollout([{ status: PENDING }], false);
    fake.answers = rollout([anEvent(SUCCEEDED)], going);
    assert.equal((await forage("rollout status r-1")).exitCode, 0);
    let asked = 0;
    fake.answers.getRollout = () => (asked++ === 0 ? going : aRollout([{}]));
    const { exitCode, stdout } = await forage("rollout status r-1 --watch -o json");
    assert.deepEqual([exitCode, JSON.parse(stdout).finished], [0, true]);
  });

  test("reports an unknown rollout", async () => {
    fake.answers.getRollout = () => {
      throw grpcError(status.NOT_FOUND, 'there is no rollout "r-9"');
    };
    assert.deepEqual(await forage("rollout status r-9"), {
      exitCode: 1,
      stdout: "",
      stderr: 'forage: there is no rollout "r-9"\n',
    });
  });
});
