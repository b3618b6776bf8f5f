import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProgram } from "../src/commands/program.ts";

test("loads only the command of the first word, regardless of the position of global flags", async () => {
  for (const line of ["version", "-n version version", "--output=json version x", "--no-color version"]) {
    const { subcommands } = await loadProgram(line.split(" "));
    assert.deepEqual(
      subcommands.map(({ name }) => name),
      ["version"],
      line,
    );
  }
});

test("loads every command by its name, and all of them for an unknown word", async () => {
  const names = (await loadProgram()).subcommands.map(({ name }) => name);
  assert.ok(names.length > 20);
  for (const name of names) assert.equal((await loadProgram([name])).subcommands[0]?.name, name);
  for (const line of [[], ["--help"], ["nothing"], ["toString"], ["--", "version"], ["-n"]])
    assert.equal((await loadProgram(line)).subcommands.length, names.length, line.join(" "));
});
