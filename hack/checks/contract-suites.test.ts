import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..", "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const SOURCES = globSync("{agent,common,coordinator,identity,scheduler,archive,sim}/**/*.ts", { cwd: root })
  .filter((path) => !path.includes("node_modules"))
  .sort();
/** The files that declare the tests of a port, by their names. */
const SUITES = SOURCES.filter((path) => /(-contract|\/conformance)\.ts$/.test(path));
const ROWS = [
  ...read("docs/decisions/contract-suites.md").matchAll(
    /^\| `\w+` \| `(?<suite>\w+)` in `(?<path>[^`]+)` \| (?<tests>.*) \|$/gm,
  ),
].map(({ groups = {} }) => ({
  suite: groups.suite ?? "",
  path: groups.path ?? "",
  tests: [...(groups.tests ?? "").matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path).sort(),
}));

test("the page of contract suites lists every suite", () => {
  assert.deepEqual(ROWS.map(({ path }) => path).sort(), SUITES);
  for (const { suite, path } of ROWS) assert.ok(read(path).includes(`export function ${suite}(`), path);
});

for (const { suite, tests } of ROWS)
  test(`the page of contract suites lists every test that calls ${suite}`, () => {
    const calls = new RegExp(`\\b${suite}\\(`);
    const callers = SOURCES.filter((path) => path.endsWith(".test.ts") && calls.test(read(path)));
    assert.deepEqual(tests, callers);
  });
