import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { ProbeAnswer } from "../probes/probe-answer.ts";
import type { HookAction, HookResult } from "./hook.ts";
import { POST_START_LIMIT_MS, runPostStart, runPreStop } from "./run-hook.ts";

const TARGET = { address: "10.64.0.2", exec: () => Promise.reject(new Error("not to be run")) };
const COMMAND: HookAction = { type: "exec", command: ["warm-up"] };
const HTTP: HookAction = { type: "http", scheme: "HTTP", port: 80, path: "/hook", headers: [] };
const TCP: HookAction = { type: "tcp", port: 80 };
const REFUSED: ProbeAnswer = { outcome: "failure", message: "connect ECONNREFUSED 10.64.0.2:80" };
const DONE: ProbeAnswer = { outcome: "success", message: "exit code 0" };

/** Runs a hook whose attempts end as in `answers`; the last one repeats. */
async function play(
  action: HookAction,
  answers: readonly ProbeAnswer[],
  hook: "postStart" | "preStop" = "postStart",
) {
  const clock = new VirtualClock();
  const abort = new AbortController();
  const limits: number[] = [];
  const run = async (_: unknown, __: unknown, timeoutMs: number): Promise<ProbeAnswer> => {
    limits.push(timeoutMs);
    await clock.sleep(10);
    return answers[Math.min(limits.length, answers.length) - 1] ?? assert.fail();
  };
  const beganMs = clock.nowMs();
  const running =
    hook === "postStart"
      ? runPostStart({ clock, run }, action, TARGET, abort.signal)
      : runPreStop({ clock, run }, action, TARGET, 5_000, abort.signal);
  let result: HookResult | undefined;
  let tookMs = 0;
  const ended = running.then((it) => {
    result = it;
    tookMs = clock.nowMs() - beganMs;
  });
  await clock.run(120_000);
  await ended;
  assert.equal(clock.pending, 0);
  return { result, tries: limits.length, limits, tookMs };
}

test("runs a command once, whatever its result", async () => {
  assert.deepEqual((await play(COMMAND, [DONE])).result, {
    outcome: "done",
    message: "post_start hook: exit code 0",
  });
  const failed = await play(COMMAND, [
    { outcome: "failure", message: "exit code 3", detail: "no disk" },
    DONE,
  ]);
  assert.deepEqual(failed.result, {
    outcome: "failed",
    message: 'post_start hook failed: exit code 3: "no disk"',
  });
  assert.deepEqual(failed.limits, [POST_START_LIMIT_MS]);
  const unknown = await play(COMMAND, [{ outcome: "unknown", message: "containerd doesn't answer" }]);
  assert.equal(unknown.result?.outcome, "failed");
});

test("post_start over the network waits for the process to listen", async () => {
  for (const action of [HTTP, TCP]) {
    const { result, tries, tookMs } = await play(action, [REFUSED, REFUSED, REFUSED, DONE]);
    assert.equal(result?.outcome, "done");
    assert.deepEqual([tries, tookMs], [4, 790]);
  }
  const never = await play(TCP, [REFUSED]);
  assert.deepEqual(never.result, {
    outcome: "failed",
    message: "post_start hook failed: connect ECONNREFUSED 10.64.0.2:80",
  });
  assert.ok(never.tookMs > 29_000 && never.tookMs <= 30_000, `${never.tookMs}`);
});

test("any HTTP status counts as success", async () => {
  const answer: ProbeAnswer = {
    outcome: "failure",
    message: "HTTP 500 Internal Server Error",
    httpStatus: 500,
  };
  const { result, tries } = await play(HTTP, [answer]);
  assert.deepEqual(result, { outcome: "done", message: "post_start hook: HTTP 500 Internal Server Error" });
  assert.equal(tries, 1);
});

test("runs pre_stop once, within the given limit", async () => {
  const { result, limits } = await play(TCP, [REFUSED], "preStop");
  assert.deepEqual(result, {
    outcome: "failed",
    message: "pre_stop hook failed: connect ECONNREFUSED 10.64.0.2:80",
  });
  assert.deepEqual(limits, [5_000]);
});

test("an abort ends the hook, also between attempts", async () => {
  const clock = new VirtualClock();
  const abort = new AbortController();
  const parts = { clock, run: () => Promise.resolve(REFUSED) };
  const running = runPostStart(parts, TCP, TARGET, abort.signal);
  await clock.run(100);
  abort.abort();
  assert.deepEqual(await running, { outcome: "aborted" });
  assert.equal(clock.pending, 0);
});
