import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { runCommand } from "./run-command.ts";

/** Returns bash's completions of this line. */
async function offers(line: string): Promise<string[]> {
  const { stdout: script } = await runCommand(["completion", "bash"]);
  const words = line
    .split(" ")
    .map((word) => `'${word}'`)
    .join(" ");
  // The builtin compopt works only within a real completion.
  const driver = `compopt() { :; }\n${script}\nCOMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _forage; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync("bash", ["--norc", "-c", driver], {
    encoding: "utf8",
    cwd: import.meta.dirname,
  });
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout.split("\n").filter(Boolean);
}

describe("completion in bash", () => {
  const cases: Record<string, readonly string[]> = {
    "forage ro": ["route", "rollout"],
    "forage token ": ["create", "ls", "revoke"],
    "forage -n shop node ": [
      "ls",
      "add",
      "cordon",
      "uncordon",
      "drain",
      "taint",
      "untaint",
      "label",
      "remove",
    ],
    "forage get po": ["pods"],
    "forage get pods -o ": ["table", "wide", "json", "yaml", "name"],
    "forage token create --role v": ["viewer"],
    "forage completion ": ["bash", "zsh", "fish"],
    "forage logs --foll": ["--follow"],
    "forage apply --foll": [],
    "forage apply -f completion.t": ["completion.test.ts"],
    "forage logs -n ": [],
  };
  for (const [line, expected] of Object.entries(cases)) {
    test(line, async () => assert.deepEqual(await offers(line), expected));
  }
});

test("names every command and flag in the script of each shell", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { stdout, exitCode } = await runCommand(["completion", shell]);
    assert.equal(exitCode, 0);
    for (const word of ["apply", "rollout status", "token create", "namespace", "tail", "no-color"]) {
      assert.ok(stdout.includes(word), `${shell}: ${word}`);
    }
  }
  assert.match(
    (await runCommand(["completion", "tcsh"])).stderr,
    /SHELL is one of bash, zsh, fish, not "tcsh"/,
  );
});
