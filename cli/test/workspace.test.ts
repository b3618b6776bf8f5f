import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { GetWorkspacesResponse, WorkspacePhase } from "@forage/proto/core";
import type { ExecRequest } from "@forage/proto/forage/operator/v1/operator";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

const LIMIT = { timeout: 180_000 };
const TOKEN = "t".repeat(32);
let fake: FakeCoordinator;
const forage = (...args: string[]): Promise<Result> => runCommand(args, { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {
    getWorkspaces: () =>
      GetWorkspacesResponse.fromPartial({
        status: [
          { id: "old", metadata: { metaId: "wolf" }, phase: WorkspacePhase.STOPPED },
          {
            id: "i1",
            metadata: { metaId: "wolf" },
            phase: WorkspacePhase.RUNNING,
            spec: { url: "https://wolf.ws.example.org" },
            runtime: { podName: "ws-i1" },
            auth: { ownerToken: TOKEN },
          },
        ],
      }),
  };
});

describe("workspace", LIMIT, () => {
  test("prints a login link by instance id and by meta id", async () => {
    for (const name of ["i1", "wolf"]) {
      const { stdout, exitCode } = await forage("workspace", "open", name);
      assert.equal(exitCode, 0);
      assert.match(stdout, /^https:\/\/wolf\.ws\.example\.org\/\.forage\/login\?code=[0-9a-f.]+\n$/);
      assert.ok(!stdout.includes(TOKEN));
    }
  });

  test("explains an unknown workspace and an invalid port", async () => {
    const unknown = await forage("workspace", "open", "none");
    assert.deepEqual([unknown.exitCode, /no workspace "none"/.test(unknown.stderr)], [1, true]);
    const bad = await forage("workspace", "open", "i1", "--port", "x");
    assert.match(bad.stderr, /--port must be a number/);
    const hidden = await forage("workspace", "open", "i1", "--port", "4000");
    assert.match(hidden.stderr, /does not expose port 4000/);
  });

  test("runs a command in the workspace's pod, and passes on its arguments and exit code", async () => {
    let start: ExecRequest | undefined;
    fake.answers.exec = (call) =>
      call.once("data", (first: ExecRequest) => {
        start = first;
        call.write({ frame: { $case: "stdout", value: Buffer.from("out\n") } });
        call.write({ frame: { $case: "exitCode", value: 7 } });
        call.end();
      });
    const result = await forage("workspace", "ssh", "wolf", "--", "ls", "-l", "a b");
    assert.deepEqual(result, { exitCode: 7, stdout: "out\n", stderr: "" });
    const value = start?.frame?.$case === "start" ? start.frame.value : undefined;
    assert.deepEqual([value?.namespace, value?.pod], ["workspaces", "ws-i1"]);
    assert.deepEqual(value?.options?.command.slice(3), ["sh", "ls", "-l", "a b"]);
    assert.equal(value?.options?.tty, false);
  });

  test("refuses ssh to a workspace without a pod", async () => {
    const { exitCode, stderr } = await forage("workspace", "ssh", "old");
    assert.deepEqual([exitCode, /has no pod/.test(stderr)], [1, true]);
  });
});
