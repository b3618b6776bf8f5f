import assert from "node:assert/strict";
import { test } from "node:test";
import {
  adopted,
  afterReboot,
  ended,
  hasFailed,
  inNewSandbox,
  isComplete,
  needsStart,
  started,
} from "./container-memory.ts";
import type { ContainerMemory, Termination } from "./pod.ts";

const LIMITS = { baseMs: 10_000, capMs: 300_000, goodRunMs: 600_000 };
const NEW: ContainerMemory = { attempt: 0, phase: "new", restarts: 0, crashes: 0, notBeforeMs: 0 };

test("restarts at once after the first end, then after increasing delays up to the cap", () => {
  const waitsMs: number[] = [];
  let memory = NEW;
  let nowMs = 1_000_000;
  for (let attempt = 1; attempt <= 8; attempt += 1) {
    memory = started(memory, attempt, `c${attempt}`, nowMs);
    assert.equal(memory.restarts, attempt - 1);
    memory = ended(memory, anEnd({ startedAtMs: nowMs, finishedAtMs: nowMs + 100 }), LIMITS);
    const waitMs = Math.max(0, memory.notBeforeMs - (nowMs + 100));
    waitsMs.push(waitMs);
    nowMs += 100 + waitMs;
  }
  assert.deepEqual(waitsMs, [0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
});

test("ten minutes without a crash reset the back-off", () => {
  const crashed = { ...started(NEW, 5, "c5", 0), crashes: 4 };
  const after = ended(crashed, anEnd({ startedAtMs: 0, finishedAtMs: 600_000 }), LIMITS);
  assert.equal(after.notBeforeMs, 0);
  assert.equal(after.crashes, 1);
  const short = ended(crashed, anEnd({ startedAtMs: 0, finishedAtMs: 599_999 }), LIMITS);
  assert.equal(short.crashes, 5);
});

test("adopting a container that this pod has started counts no restart", () => {
  const found = { id: "c1", container: "main", attempt: 1, specHash: "h", state: "running" } as const;
  assert.equal(adopted(NEW, found, 5).restarts, 0);
  assert.equal(adopted(NEW, { ...found, attempt: 3 }, 5).restarts, 2);
  const known = { ...started(NEW, 1, "c1", 1) };
  assert.equal(adopted(known, found, 5).restarts, 0);
  assert.equal(adopted(known, { ...found, id: "c2", attempt: 2 }, 5).restarts, 1);
  assert.equal(adopted(known, found, 5).startedAtMs, 1);
});

test("after a reboot all containers restart at once, and their terminations give the reason", () => {
  const memory = {
    sandbox: { podUid: "p", namespacePath: "/run/netns/p", address: "10.0.0.2" },
    ports: [],
    containers: {
      ran: started(NEW, 2, "c2", 7),
      waited: {
        ...NEW,
        attempt: 3,
        phase: "ended",
        crashes: 5,
        notBeforeMs: 99,
        lastTermination: anEnd({}),
      } as const,
    },
    readyAtMs: 1,
    startedAtMs: 1,
    removed: false,
  };
  const after = afterReboot(memory, 50);
  assert.equal(after.sandbox, undefined);
  assert.equal(after.readyAtMs, undefined);
  assert.deepEqual(after.ports, [], "host ports stay the pod's");
  assert.equal(after.containers.ran?.phase, "ended");
  assert.equal(after.containers.ran?.lastTermination?.reason, "HostRebooted");
  assert.equal(after.containers.waited?.notBeforeMs, 0);
  assert.equal(after.containers.waited?.lastTermination?.reason, "Error");
  assert.deepEqual(afterReboot(after, 60), after, "a second look changes nothing");
});

for (const [policy, exitCode, expected] of [
  ["Always", 0, true],
  ["Always", 1, true],
  ["OnFailure", 0, false],
  ["OnFailure", 1, true],
  ["Never", 0, false],
  ["Never", 1, false],
] as const) {
  test(`${policy}: after exit code ${exitCode} it ${expected ? "starts again" : "stays ended"}`, () => {
    const memory = ended(started(NEW, 1, "c", 0), anEnd({ exitCode }), LIMITS);
    assert.equal(needsStart(memory, policy), expected);
    assert.equal(needsStart(NEW, policy), true);
  });
}

test("keeps the last five ends, newest first, and the message of the last one only", () => {
  let memory = NEW;
  for (let attempt = 1; attempt <= 7; attempt += 1) {
    memory = started(memory, attempt, `c${attempt}`, 0);
    memory = ended(memory, anEnd({ exitCode: attempt, message: "x".repeat(4_000) }), LIMITS);
  }
  const { lastTermination, earlier = [] } = memory;
  assert.deepEqual(
    [lastTermination, ...earlier].map((it) => it?.exitCode),
    [7, 6, 5, 4, 3],
  );
  assert.equal(lastTermination?.message.length, 4_000);
  assert.ok(earlier.every(({ message }) => message.length === 1_000));
});

test("discards the values of a run when it ends", () => {
  const run = {
    ...started(NEW, 1, "c1", 0),
    postStart: "done",
    health: { started: true, ready: true },
    stop: { sinceMs: 1 },
  } as const;
  for (const after of [ended(run, anEnd({}), LIMITS), started(run, 2, "c2", 1)]) {
    assert.deepEqual([after.postStart, after.health, after.stop], [undefined, undefined, undefined]);
  }
  const found = { id: "c1", container: "main", attempt: 1, specHash: "h", state: "running" } as const;
  assert.equal(adopted(run, found, 5).postStart, "done", "the same run, found again");
  assert.equal(adopted(run, { ...found, id: "c2", attempt: 2 }, 5).postStart, undefined);
});

test("a container that was stopped because it was unhealthy has failed, whatever its exit code", () => {
  assert.equal(hasFailed(anEnd({ exitCode: 0, reason: "Completed" })), false);
  assert.equal(hasFailed(anEnd({ exitCode: 0, reason: "LivenessProbeFailed" })), true);
  assert.equal(isComplete(ended(started(NEW, 1, "c", 0), anEnd({ exitCode: 0 }), LIMITS)), true);
  assert.equal(isComplete(started(NEW, 1, "c", 0)), false);
});

test("in a new namespace init containers run again, and attempt numbers continue", () => {
  const done = ended(started(NEW, 3, "c", 0), anEnd({ exitCode: 0 }), LIMITS);
  const memory = { containers: { seed: done, main: done }, begun: "main", removed: false } as const;
  const after = inNewSandbox(memory, ["seed", "never-run"], []);
  assert.equal(after.begun, undefined);
  assert.deepEqual([after.containers.seed?.phase, after.containers.seed?.attempt], ["new", 3]);
  assert.equal(after.containers.main, done);
});

test("an unrecorded run of an init container in the old namespace counts as an attempt but not as done", () => {
  const found = [
    { container: "seed", attempt: 1 },
    { container: "seed", attempt: 2 },
    { container: "main", attempt: 1 },
  ];
  const { containers } = inNewSandbox({ containers: {}, removed: false }, ["seed"], found);
  assert.deepEqual(containers, { seed: { ...NEW, attempt: 2 } });
});

function anEnd(change: Partial<Termination>): Termination {
  return { exitCode: 1, signal: 0, reason: "Error", message: "", startedAtMs: 0, finishedAtMs: 1, ...change };
}
