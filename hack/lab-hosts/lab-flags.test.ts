import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLabFlags } from "./lab-flags.ts";

test("up accepts the number of hosts, and optionally a separate host for the coordinator", () => {
  assert.deepEqual(parseLabFlags(["up", "3"]), {
    name: "lab",
    command: { type: "up", count: 3, coordinatorOwnHost: false, kind: "nspawn" },
  });
  const { name, command } = parseLabFlags(["up", "2", "--coordinator", "own-host", "--name", "two"]);
  assert.equal(name, "two");
  assert.ok(command.type === "up" && command.coordinatorOwnHost);
});

test("arguments after the host of exec belong to the program", () => {
  assert.deepEqual(parseLabFlags(["--name", "two", "exec", "h1", "ls", "--name", "x"]), {
    name: "two",
    command: { type: "exec", host: "h1", argv: ["ls", "--name", "x"] },
  });
  assert.deepEqual(parseLabFlags(["exec", "h1", "--", "--version"]).command, {
    ...{ type: "exec", host: "h1", argv: ["--version"] },
  });
});

test("slow accepts a delay, a loss or both, with or without units", () => {
  assert.deepEqual(parseLabFlags(["slow", "h2", "--delay", "100ms", "--loss", "2.5%"]).command, {
    ...{ type: "slow", host: "h2", link: { delayMs: 100, lossPercent: 2.5 } },
  });
  assert.deepEqual(parseLabFlags(["slow", "h2", "--loss", "5"]).command, {
    ...{ type: "slow", host: "h2", link: { delayMs: 0, lossPercent: 5 } },
  });
});

test("partition accepts several hosts, logs at most one", () => {
  assert.deepEqual(parseLabFlags(["partition", "h2", "h3"]).command, {
    ...{ type: "partition", hosts: ["h2", "h3"] },
  });
  assert.deepEqual(parseLabFlags(["logs"]).command, { type: "logs", host: undefined, lines: 100 });
  assert.deepEqual(parseLabFlags(["logs", "h2", "--lines", "5"]).command, {
    ...{ type: "logs", host: "h2", lines: 5 },
  });
});

const WRONG: readonly (readonly string[])[] = [
  [],
  ["sideways"],
  ["up"],
  ["up", "2", "3"],
  ["up", "2", "--coordinator", "elsewhere"],
  ["up", "2", "--kind", "cloud"],
  ["down", "h1"],
  ["exec"],
  ["exec", "h1"],
  ["reboot"],
  ["partition"],
  ["slow", "h1"],
  ["slow", "h1", "--delay", "-5"],
  ["slow", "h1", "--loss", "101"],
  ["slow", "h1", "--delay", "1; reboot"],
  ["status", "--name", "../x"],
  ["status", "--surprise"],
];

for (const argv of WRONG)
  test(`refuses hack/lab ${argv.join(" ")}`, () => {
    assert.throws(() => parseLabFlags(argv), { code: "BAD_USAGE" });
  });
