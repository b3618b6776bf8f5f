import assert from "node:assert/strict";
import { test } from "node:test";
import { commandLine, isAllowedVariable } from "./commands.ts";

const ENVIRONMENT = { term: "xterm-256color", variables: new Map([["LANG", "C.UTF-8"]]) };

test("keeps user input out of the script", () => {
  const text = "$(reboot); `reboot` 'x' \"y\"";
  const [shell, option, script = "", ...parameters] = commandLine({ type: "command", text }, ENVIRONMENT);
  assert.deepEqual([shell, option], ["/bin/sh", "-c"]);
  assert.ok(!script.includes("reboot"));
  assert.deepEqual(parameters, ["ssh", "xterm-256color", text, "LANG=C.UTF-8"]);
});

test("accepts only variables of the locale", () => {
  assert.equal(isAllowedVariable("LC_ALL", "C"), true);
  for (const name of ["PATH", "LD_PRELOAD", "LANG X", "LC_", "LC_a"])
    assert.equal(isAllowedVariable(name, "x"), false);
  assert.equal(isAllowedVariable("LANG", "x\0y"), false);
  assert.equal(isAllowedVariable("LANG", "x".repeat(2_000)), false);
});
