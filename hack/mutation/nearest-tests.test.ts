import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestTests } from "./nearest-tests.ts";

const IMPORTS: Readonly<Record<string, readonly string[]>> = {
  "agent/src/probe.ts": [],
  "agent/src/pods/loop.ts": ["agent/src/probe.ts"],
  "agent/src/pods/loop.test.ts": ["agent/src/pods/loop.ts"],
  "agent/src/agent.ts": ["agent/src/pods/loop.ts"],
  "agent/src/agent.test.ts": ["agent/src/agent.ts"],
  "agent/src/probe.test.ts": ["agent/src/probe.ts"],
  "agent/src/a/other.test.ts": ["agent/src/probe.ts"],
  "agent/src/dns.test.ts": [],
  "agent/src/main.ts": ["agent/src/agent.ts", "agent/src/start.ts"],
  "agent/src/start.ts": [],
  "agent/test/agent.e2e.test.ts": ["agent/src/agent.ts"],
  "agent/test/main.test.ts": [],
};
const modules = Object.entries(IMPORTS).map(([path, targets]) => ({
  path,
  imports: targets.map((target) => ({ target, specifier: target, line: 1 })),
}));

test("returns the tests that load a module, nearest first, and those beside it before others", () => {
  const tests = new Set(Object.keys(IMPORTS).filter((path) => /\/src\/.*\.test\.ts$/.test(path)));
  assert.deepEqual(nearestTests("agent/src/probe.ts", modules, tests), [
    "agent/src/probe.test.ts",
    "agent/src/a/other.test.ts",
    "agent/src/pods/loop.test.ts",
    "agent/src/agent.test.ts",
  ]);
});

test("returns the tests that start a program with the module", () => {
  const tests = new Set(["agent/src/agent.test.ts", "agent/test/main.test.ts"]);
  const mentions = new Map([["agent/test/main.test.ts", ["agent/src/main.ts"]]]);
  assert.deepEqual(nearestTests("agent/src/start.ts", modules, tests, mentions), ["agent/test/main.test.ts"]);
  assert.deepEqual(nearestTests("agent/src/agent.ts", modules, tests, mentions), [
    "agent/src/agent.test.ts",
    "agent/test/main.test.ts",
  ]);
  assert.deepEqual(nearestTests("agent/src/start.ts", modules, tests), []);
});
