import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { selectTestFiles } from "./select-test-files.ts";

const root = join(import.meta.dirname, "..", "..");

test("every test file is in one group, and what runs containers is run by itself", () => {
  const { unit, processes, onHosts } = selectTestFiles(root, []);
  const all = [...unit, ...processes, ...onHosts];
  assert.equal(new Set(all).size, all.length);
  const found = globSync("{*,*/**}/*.test.ts", { cwd: root }).filter(
    (path) => !/node_modules|(^|\/)gen\//.test(path),
  );
  assert.deepEqual(all.toSorted(), found.sort());
  for (const path of all.filter((each) => each.includes(".e2e."))) assert.ok(onHosts.includes(path), path);
  for (const path of [...unit, ...processes]) assert.doesNotMatch(path, /\/e2e\//);
});

test("patterns choose among them", () => {
  const { unit, processes, onHosts } = selectTestFiles(root, [
    "cli/test/list",
    "hack/e2e/job",
    "select-test-files",
  ]);
  assert.deepEqual(unit, ["hack/tests/select-test-files.test.ts"]);
  assert.deepEqual(processes, ["cli/test/list.test.ts"]);
  assert.deepEqual(onHosts, ["hack/e2e/job.e2e.test.ts"]);
});
