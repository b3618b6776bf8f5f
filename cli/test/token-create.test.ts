import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { FakeCoordinator } from "./fake-coordinator.ts";
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

describe("token create", () => {
  test("creates a token to join with", async () => {
    fake.answers.createJoinToken = () => ({
      token: "FLT1.x",
      expiresAt: { seconds: 1_800_000_000n, nanos: 0 },
      coordinators: [],
      allCoordinators: [],
    });
    assert.deepEqual(await forage("token create"), { exitCode: 0, stdout: "FLT1.x\n", stderr: "" });
    const { stdout } = await forage(
      "token create --node n1 --ttl 90s --reusable --label zone=a --label rack=1 -o json",
    );
    assert.deepEqual(JSON.parse(stdout), { token: "FLT1.x", expiresAt: "2027-01-15T08:00:00.000Z" });
    assert.deepEqual(fake.requests("createJoinToken"), [
      { ttlSeconds: 0, nodeName: "", reusable: false, labels: {}, taints: [] },
      { ttlSeconds: 90, nodeName: "n1", reusable: true, labels: { zone: "a", rack: "1" }, taints: [] },
    ]);
  });

  test("creates a token for people and programs", async () => {
    fake.answers.createApiToken = () => ({ token: "flt_x", id: "abc", expiresAt: undefined });
    assert.equal(
      (await forage("token create --role viewer --namespace shop --ttl 7d --description ci")).stdout,
      "flt_x\n",
    );
    assert.deepEqual(JSON.parse((await forage("token create --role admin -o json")).stdout), {
      token: "flt_x",
      id: "abc",
    });
    assert.deepEqual(fake.requests("createApiToken"), [
      { role: "viewer", namespaces: ["shop"], ttlSeconds: 604_800n, description: "ci", neverExpires: false },
      { role: "admin", namespaces: [], ttlSeconds: 0n, description: "", neverExpires: false },
    ]);
  });

  test("refuses contradictory flags", async () => {
    assert.match((await forage("token create --role viewer --node n1")).stderr, /--node is for join tokens/);
    assert.match((await forage("token create --description x")).stderr, /--description is for API tokens/);
    assert.match((await forage("token create --role owner")).stderr, /--role is one of/);
  });
});
