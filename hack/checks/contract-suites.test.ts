import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..", "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const SOURCES = globSync("{agent,common,coordinator,identity,scheduler,archive,sim}/**/*.ts", { cwd: root })
  .filter((path) => !path.includes("node_modules"))
  .sort();
/** The files that declare the tests of an interface, by their names. */
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

/** Matches a class in tests, or beside the real implementation, that implements an interface for tests. */
const STAND_IN = /^(?:export )?class (?<name>\w+)(?: extends [\w<>]+)? implements (?<ports>[\w<>, ]+) \{$/gm;
const STAND_IN_FILES = /\.test\.ts$|\/test\/|^sim\/|(^|\/)(fake|memory)[^/]*\.ts$/;

test("each port that has a stand-in has a suite, or the page states why it needs none", () => {
  const page = read("docs/decisions/contract-suites.md");
  const listed = (row: RegExp): Set<string> => new Set([...page.matchAll(row)].map(([, port = ""]) => port));
  const withSuite = listed(/^\| `(\w+)` \| `\w+` in /gm);
  const without = listed(/^\| `(\w+)` \| (?!`\w+` in )/gm);
  const found = SOURCES.filter((path) => STAND_IN_FILES.test(path)).flatMap((path) =>
    [...read(path).matchAll(STAND_IN)].flatMap(({ groups = {} }) =>
      (groups.ports ?? "").split(", ").map((port) => port.replace(/<.*/, "")),
    ),
  );
  const ports = new Set(found.filter((port) => isOfSources(port)));
  assert.deepEqual([...ports].filter((port) => !withSuite.has(port)).sort(), [...without].sort());
});

/** Reports whether the sources of a package declare the interface. Tests may have interfaces of their own. */
function isOfSources(port: string): boolean {
  const declares = new RegExp(`^export (?:interface|type) ${port}\\b`, "m");
  return SOURCES.some(
    (path) => /^\w+\/src\//.test(path) && !path.endsWith(".test.ts") && declares.test(read(path)),
  );
}
