import assert from "node:assert/strict";
import { test } from "node:test";
import { type RecordOptions, recordCommands } from "./record-commands.ts";

function aShell(times: readonly number[]): RecordOptions {
  const rest = [...times];
  return {
    cwd: import.meta.dirname,
    env: process.env,
    translate: (command) => command.replace("sudo ", ""),
    redact: (line) => line.replace("secret", "…"),
    monotonicMs: () => rest.shift() ?? times.at(-1) ?? 0,
    onLine: () => undefined,
  };
}

test("records the output of commands, and shortens long pauses", async () => {
  const lines = await recordCommands(
    [{ text: "sudo echo secret; echo b >&2" }],
    aShell([0, 200, 60_000, 60_100]),
  );
  const typedMs = "$ sudo echo secret; echo b >&2".length * 35;
  assert.deepEqual(lines, [
    { atMs: 900, text: "$ sudo echo secret; echo b >&2", typedMs },
    { atMs: 900 + typedMs + 200, text: "…" },
    { atMs: 900 + typedMs + 200 + 1_500, text: "b" },
  ]);
});

test("fails when a command fails", async () => {
  await assert.rejects(
    recordCommands([{ text: "exit 3", exitCode: 1 }], aShell([0])),
    /exit 3 ended with exit code 3/,
  );
});
