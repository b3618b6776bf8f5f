import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WorkspaceConditionBool, WorkspacePhase } from "@forage/proto/core";
import { SetClock } from "../lib/set-clock.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { WorkspaceScene } from "../system/workspace-scene.ts";

const LIMIT = { timeout: 300_000 };
const { RUNNING, STOPPED } = WorkspacePhase;
/** Programs that have just started have to connect first. */
const STOP_LIMIT_MS = 120_000;
const DAY_SECONDS = 24 * 3_600;
/** The clocks are set further apart than this, and no step of the test takes as long. */
const TOLERANCE_MS = 6 * 3_600_000;

describe("workspaces on real containers whose programs' clocks are set", { concurrency: false }, () => {
  let host: TestHost;
  let scene: WorkspaceScene;
  let coordinatorClock: SetClock;
  let agentClock: SetClock;

  before(async () => {
    host = await startTestHost();
    coordinatorClock = new SetClock(join(host.dir, "coordinator-clock"));
    agentClock = new SetClock(join(host.dir, "agent-clock"));
    scene = await WorkspaceScene.start(host, {
      coordinator: coordinatorClock.environment,
      agent: agentClock.environment,
    });
  }, LIMIT);
  after(async () => {
    scene?.close();
    await host?.close();
  }, LIMIT);

  test(
    "a workspace continues to run, and is saved and restored, when clocks are set by days",
    LIMIT,
    async () => {
      const { agent, coordinator } = scene.system;
      const [first, next] = [scene.instance("a", 1), scene.instance("a", 2)];
      await scene.run(first);
      writeFileSync(join(scene.contentOf(first), "kept"), "from the beginning");

      // The steps are longer than all time-outs, and then back. Certificates are valid for 30 days.
      const steps = [
        [10, 3],
        [1, 8],
      ] as const;
      for (const [index, [coordinatorDays, agentDays]] of steps.entries()) {
        coordinatorClock.set(coordinatorDays * DAY_SECONDS);
        agentClock.set(agentDays * DAY_SECONDS);
        isAhead(await scene.calls.markActive(first), coordinatorDays);
        writeFileSync(join(scene.contentOf(first), "newest"), `day ${coordinatorDays}`);
        await scene.calls.backup(first);
        isAhead(await storedMs(agent.logPath, index), agentDays);
        const { phase, conditions } = (await scene.calls.describe(first)) ?? {};
        assert.deepEqual([phase, conditions?.timeout, conditions?.failed], [RUNNING, "", ""]);
      }

      // For programs that start now, the records are from the future.
      for (const program of [coordinator, agent]) await program.kill();
      for (const clock of [coordinatorClock, agentClock]) clock.set(0);
      coordinator.start();
      agent.start();
      await scene.becomes(
        first,
        "it runs with its node again",
        ({ phase, conditions }) =>
          phase === RUNNING && conditions?.networkNotReady === WorkspaceConditionBool.FALSE,
      );
      isAhead(await scene.calls.markActive(first), 0);
      writeFileSync(join(scene.contentOf(first), "newest"), "day 0");
      const digest = await scene.digest(scene.contentOf(first));
      await scene.calls.stop(first);
      const { conditions } = await scene.calls.reaches(first, STOPPED, STOP_LIMIT_MS);
      assert.deepEqual(
        [conditions?.finalBackupComplete, conditions?.timeout, conditions?.failed],
        [1, "", ""],
      );

      coordinatorClock.set(5 * DAY_SECONDS);
      await scene.run(next);
      assert.equal(await scene.digest(scene.contentOf(next)), digest);
    },
  );
});

function isAhead(timeMs: number, days: number): void {
  const aheadMs = timeMs - Date.now();
  const differenceMs = Math.abs(aheadMs - days * DAY_SECONDS * 1_000);
  assert.ok(differenceMs < TOLERANCE_MS, `a clock is ${aheadMs} ms ahead, and should be ${days} days`);
}

/**
 * Returns the time by the agent's own clock at which it has stored an archive. Its log entry may follow the
 * coordinator's answer.
 */
async function storedMs(logPath: string, index: number): Promise<number> {
  const lines = (): string[] =>
    readFileSync(logPath, "utf8")
      .split("\n")
      .filter((line) => line.includes('"workspace-archive-stored"') && line.endsWith("}"));
  await waitFor(() => lines().length > index, {
    ...{ what: `archive ${index} is in the agent's log`, limitMs: 60_000 },
  });
  const { time }: { time: number } = JSON.parse(lines()[index] ?? "");
  return time;
}
