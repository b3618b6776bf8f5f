import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEvent } from "./parse-event.ts";

const aLine = (Topic: string, data: object, Namespace = "ns") =>
  JSON.stringify({
    Timestamp: "2026-01-02T03:04:05.5Z",
    ID: "",
    Namespace,
    Topic,
    Status: "unknown",
    Event: JSON.stringify(data),
  });

const exit = (change: object) => aLine("/tasks/exit", { container_id: "c1", id: "c1", pid: 1, ...change });

for (const [what, line, expected] of [
  ["a start", aLine("/tasks/start", { container_id: "c1", pid: 4 }), { type: "started", containerId: "c1" }],
  [
    "an exit",
    exit({ exit_status: 3, exited_at: { seconds: 100, nanos: 372511293 } }),
    { type: "exited", containerId: "c1", exitCode: 3, atMs: 100_372 },
  ],
  [
    "an exit with 0, where Go leaves zeros out",
    exit({ exited_at: { seconds: 100 } }),
    { type: "exited", containerId: "c1", exitCode: 0, atMs: 100_000 },
  ],
  [
    "an exit with a time as text",
    exit({ exited_at: "2026-01-02T03:04:05Z" }),
    { type: "exited", containerId: "c1", exitCode: 0, atMs: Date.UTC(2026, 0, 2, 3, 4, 5) },
  ],
  [
    "an exit with no time",
    exit({}),
    { type: "exited", containerId: "c1", exitCode: 0, atMs: Date.UTC(2026, 0, 2, 3, 4, 5, 500) },
  ],
  ["an out of memory", aLine("/tasks/oom", { container_id: "c1" }), { type: "oom", containerId: "c1" }],
  ["a removal", aLine("/containers/delete", { id: "c1" }), { type: "removed", containerId: "c1" }],
] as const) {
  test(`reads ${what}`, () => assert.deepEqual(parseEvent(line, "ns"), expected));
}

for (const [what, line] of [
  ["an exec's exit", exit({ id: "exec-1", exit_status: 5 })],
  ["another namespace", aLine("/tasks/start", { container_id: "c1" }, "moby")],
  ["the namespace's own change", aLine("/namespaces/update", { name: "ns" })],
  ["another topic", aLine("/snapshot/prepare", { key: "x" })],
  ["an empty line", ""],
  ["half a line", exit({}).slice(0, 50)],
  ["no object", "[]"],
] as const) {
  test(`ignores ${what}`, () => assert.equal(parseEvent(line, "ns"), undefined));
}
