import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { Pod } from "@forage/proto/forage/operator/v1/operator";
import { aPod, aPodStatus } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { runCommand } from "./run-command.ts";

describe("failed pods that are kept after a rollback", () => {
  let fake: FakeCoordinator;

  before(async () => {
    fake = await FakeCoordinator.start();
  });
  after(() => fake.close());
  beforeEach(() => {
    fake.answers = {
      listPods: ({ name }) => ({
        pods: [aPod()].filter((pod) => name === "" || pod.name === name),
        kept: [keptPod()],
      }),
      listResources: () => ({ resources: [] }),
    };
  });

  const forage = (words: string) => runCommand(words.split(" "), { env: fake.env });

  test("lists kept pods last, as failed and with the time until which they are kept", async () => {
    const lines = (await forage("get pods")).stdout.trimEnd().split("\n");
    assert.match(
      lines.at(-1) ?? "",
      /^web-9 +0\/2 +Failed .*exited with code 3.*its logs are kept until 2030-01-01T01:00:00Z/,
    );
  });

  test("describes the last status of a kept pod, and the time until which it is kept", async () => {
    const { stdout, exitCode } = await forage("describe pod web-9");
    assert.equal(exitCode, 0);
    assert.match(stdout, /Status: +Failed/);
    assert.match(stdout, /Stopped: +an older revision/);
    assert.match(stdout, /Kept until: +2030-01-01T01:00:00Z/);
    assert.match(stdout, /State: +waiting: CrashLoopBackOff\n/);
    assert.match(stdout, /State: +was running when the pod was stopped/);
  });
});

function keptPod(): Pod {
  const at = (seconds: number) => ({ seconds: BigInt(Date.UTC(2030, 0, 1) / 1000 + seconds), nanos: 0 });
  const ended = {
    exitCode: 3,
    signal: 0,
    reason: "Error",
    message: "no luck",
    startedAt: at(0),
    finishedAt: at(1),
  };
  const container = {
    containerId: "",
    image: "app:bad",
    terminations: [],
    init: false,
    started: true,
    ready: false,
  };
  const status = aPodStatus({
    phase: PodPhase.FAILED,
    ready: false,
    containers: [
      {
        ...container,
        name: "main",
        restartCount: 2,
        lastTermination: ended,
        state: { $case: "waiting", value: { reason: "CrashLoopBackOff", message: "", retryAt: at(60) } },
      },
      {
        ...container,
        name: "side",
        restartCount: 0,
        lastTermination: undefined,
        state: { $case: "running", value: { startedAt: at(0) } },
      },
    ],
  });
  return aPod({ name: "web-9", status, stopReason: "an older revision", keptUntil: at(3600) });
}
