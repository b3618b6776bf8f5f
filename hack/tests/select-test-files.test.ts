import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { selectTestFiles } from "./select-test-files.ts";

const root = join(import.meta.dirname, "..", "..");

test("every test file is in one group, and those that run containers are separate from the others", () => {
  const { unit, processes, computing, onHosts, alone } = selectTestFiles(root, []);
  const all = [...unit, ...processes, ...computing, ...onHosts, ...alone];
  assert.equal(new Set(all).size, all.length);
  const found = globSync("{*,*/**}/*.test.ts", { cwd: root }).filter(
    (path) => !/node_modules|(^|\/)gen\//.test(path),
  );
  assert.deepEqual(all.toSorted(), found.sort());
  for (const path of all.filter((each) => each.includes(".e2e.")))
    assert.ok(onHosts.includes(path) || alone.includes(path), path);
  for (const path of [...unit, ...processes, ...computing]) assert.doesNotMatch(path, /\/e2e\//);
});

test("files that measure run alone, and each listed file exists", () => {
  const { alone } = selectTestFiles(root, []);
  assert.deepEqual(alone, [
    "agent/test/driver/tasks.e2e.test.ts",
    "hack/e2e/lab-command.e2e.test.ts",
    "hack/e2e/lab-drivers.e2e.test.ts",
    "hack/e2e/lab-faults.e2e.test.ts",
    "hack/e2e/lab-long.e2e.test.ts",
    "hack/e2e/lab.e2e.test.ts",
  ]);
});

test("the files that only compute are those of the simulations and of the scheduler", () => {
  const { computing } = selectTestFiles(root, []);
  const folders = new Set(computing.map((path) => path.slice(0, path.lastIndexOf("/"))));
  assert.deepEqual([...folders].sort(), ["scheduler/test", "sim"]);
});

test("patterns select files", () => {
  const { unit, processes, onHosts } = selectTestFiles(root, [
    "cli/test/list",
    "hack/e2e/job",
    "select-test-files",
  ]);
  assert.deepEqual(unit, ["hack/tests/select-test-files.test.ts"]);
  assert.deepEqual(processes, ["cli/test/list.test.ts"]);
  assert.deepEqual(onHosts, ["hack/e2e/job.e2e.test.ts"]);
});
