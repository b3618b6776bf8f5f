import assert from "node:assert/strict";
import { test } from "node:test";
import { RuntimeError } from "../runtime.ts";
import { parseInspect, parseList } from "./parse-container.ts";

const ID = "ab".repeat(32);
const aLine = (status: string, labels: Record<string, string> | null = {}) =>
  JSON.stringify({ id: ID, name: "i-1", image: "localhost/a:1", status, labels });

for (const [status, expected] of [
  ["Up", { state: "running" }],
  ["Up (healthy)", { state: "running" }],
  ["Created", { state: "created" }],
  ["Exited (0) Less than a second ago", { state: "exited", exitCode: 0 }],
  ["Exited (137) 2 minutes ago", { state: "exited", exitCode: 137 }],
  ["Restarting (1) 3 seconds ago", { state: "exited", exitCode: 1 }],
  ["Paused", { state: "paused" }],
  ["Unknown", { state: "unknown" }],
  ["", { state: "unknown" }],
] as const) {
  test(`parses the listed status ${JSON.stringify(status)}`, () => {
    assert.deepEqual(parseList(aLine(status)), [
      { id: ID, name: "i-1", image: "localhost/a:1", labels: {}, ...expected },
    ]);
  });
}

test("labels keep commas and equals signs; labels of nerdctl and containerd are left out", () => {
  const labels = {
    "forage.dev/pod-uid": "u1",
    note: "a,forage.dev/pod-uid=evil",
    "nerdctl/name": "x",
    "containerd.io/restart.policy": "no",
  };
  assert.deepEqual(parseList(aLine("Up", labels))[0]?.labels, {
    "forage.dev/pod-uid": "u1",
    note: "a,forage.dev/pod-uid=evil",
  });
  assert.deepEqual(parseList(aLine("Up", null))[0]?.labels, {});
});

test("leaves out blank lines and containers that vanished during the listing", () => {
  const vanished = JSON.stringify({ id: "", name: "", image: "", status: "", labels: null });
  assert.equal(parseList(`\n${aLine("Up")}\n${vanished}\n\n`).length, 1);
});

test("rejects text that is not JSON", () => {
  assert.throws(() => parseList("time=… level=warning\n"), RuntimeError);
});

const anInspection = (state: object) =>
  JSON.stringify({ id: ID, name: "/i-1", image: "localhost/a:1", labels: {}, state });

test("parses a running container", () => {
  const state = {
    Status: "running",
    Pid: 42,
    ExitCode: 0,
    StartedAt: "2026-01-02T03:04:05.678901234Z",
    FinishedAt: "",
  };
  assert.deepEqual(parseInspect(anInspection(state)), {
    id: ID,
    name: "i-1",
    image: "localhost/a:1",
    labels: {},
    state: "running",
    startedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    pid: 42,
  });
});

test("parses a container that has ended and one that never ran", () => {
  const ended = {
    Status: "exited",
    Pid: 42,
    ExitCode: 7,
    StartedAt: "2026-01-02T03:04:05Z",
    FinishedAt: "2026-01-02T03:04:06Z",
  };
  const { exitCode, finishedAtMs, pid } = parseInspect(anInspection(ended));
  assert.deepEqual([exitCode, finishedAtMs, pid], [7, Date.UTC(2026, 0, 2, 3, 4, 6), undefined]);
  const never = parseInspect(
    anInspection({ Status: "created", Pid: 0, ExitCode: 0, StartedAt: "0001-01-01T00:00:00Z" }),
  );
  assert.deepEqual([never.state, never.exitCode, never.startedAtMs], ["created", undefined, undefined]);
});
