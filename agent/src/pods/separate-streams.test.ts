import assert from "node:assert/strict";
import { test } from "node:test";
import { separateStreams } from "./separate-streams.ts";

const says = (streams: string) => ({ annotations: { "forage.dev/log-streams": streams } });

for (const [what, pod, container, byDefault, expected] of [
  ["nothing said", {}, {}, false, false],
  ["the host's default", {}, {}, true, true],
  ["two logs by annotation", says("separate"), {}, false, true],
  ["one log by annotation where the default is two", says("combined"), {}, true, false],
  ["a terminal", says("separate"), { tty: true }, true, false],
  ["a runtime that is a program, by default", {}, { ociRuntime: "/usr/bin/crun" }, true, true],
  ["a runtime that is none, by default", {}, { ociRuntime: "io.containerd.kata.v2" }, true, false],
  // The runtime is rejected when the container starts.
  [
    "two logs by annotation, with a runtime that is none",
    says("separate"),
    { ociRuntime: "io.containerd.kata.v2" },
    false,
    true,
  ],
] as const) {
  test(`streams are ${expected ? "separate" : "combined"}: ${what}`, () => {
    assert.equal(separateStreams(pod, container, byDefault), expected);
  });
}
