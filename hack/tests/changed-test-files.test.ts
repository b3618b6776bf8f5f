import assert from "node:assert/strict";
import { test } from "node:test";
import { changedTestFiles } from "./changed-test-files.ts";

const FILES: Readonly<Record<string, readonly string[]>> = {
  "common/src/clock.ts": [],
  "agent/src/probe.ts": ["common/src/clock.ts"],
  "agent/src/probe.test.ts": ["agent/src/probe.ts"],
  "agent/src/journal.ts": [],
  "agent/src/journal.test.ts": ["agent/src/journal.ts"],
  "agent/test/scene.ts": ["agent/src/journal.ts"],
  "agent/test/probe.e2e.test.ts": ["agent/test/scene.ts"],
  "cli/src/view.ts": [],
  "cli/src/view.test.ts": ["cli/src/view.ts"],
  "archive/src/tar.ts": [],
  "archive/src/tar.test.ts": ["archive/src/tar.ts"],
  "identity/src/token.test.ts": ["proto/gen/forage/token.ts"],
  "hack/e2e/fleet.e2e.test.ts": [],
};

function testsFor(...changed: string[]): string[] {
  const modules = Object.entries(FILES).map(([path, targets]) => ({
    path,
    imports: targets.map((target) => ({ target, specifier: target, line: 1 })),
  }));
  const tests = Object.keys(FILES).filter((path) => path.endsWith(".test.ts"));
  return changedTestFiles({ changed, modules, tests });
}

const E2E = ["agent/test/probe.e2e.test.ts", "hack/e2e/fleet.e2e.test.ts"];

test("runs the tests that import a changed file through others, and the end-to-end tests of all affected packages", () => {
  assert.deepEqual(testsFor("common/src/clock.ts"), ["agent/src/probe.test.ts", ...E2E]);
});

test("runs no test of another package", () => {
  assert.deepEqual(testsFor("archive/src/tar.ts"), ["archive/src/tar.test.ts"]);
});

test("runs the end-to-end tests of the whole product for a changed program", () => {
  assert.deepEqual(testsFor("cli/src/view.ts"), ["cli/src/view.test.ts", "hack/e2e/fleet.e2e.test.ts"]);
});

test("runs only the changed test, and for changed test support only the tests that import it", () => {
  assert.deepEqual(testsFor("cli/src/view.test.ts"), ["cli/src/view.test.ts"]);
  assert.deepEqual(testsFor("agent/test/scene.ts"), ["agent/test/probe.e2e.test.ts"]);
});

test("runs the tests beside a changed file that is not a module, and those of its package's programs", () => {
  assert.deepEqual(testsFor("agent/src/sample.json"), [
    "agent/src/probe.test.ts",
    "agent/src/journal.test.ts",
    ...E2E,
  ]);
});

test("runs every test for a changed file outside the packages, and none for a page of the root", () => {
  assert.equal(testsFor("package.json").length, 7);
  assert.equal(testsFor("systemd/forage-agent.service").length, 7);
  assert.deepEqual(testsFor("CHANGELOG.md"), []);
});

test("runs all but the end-to-end tests for changed documentation, and those that other changes affect", () => {
  assert.ok(!testsFor("docs/architecture.md").some((path) => path.includes("e2e")));
  assert.equal(testsFor("docs/architecture.md").length, 5);
  assert.equal(testsFor("docs/architecture.md", "cli/src/view.ts").length, 6);
});

test("counts a changed .proto file as all generated code", () => {
  assert.deepEqual(testsFor("proto/forage/other.proto"), ["identity/src/token.test.ts"]);
});

test("runs the tests that start a changed file, or an importer of it, as a program", () => {
  const modules = [
    { path: "coordinator/src/main.ts", imports: [aTarget("coordinator/src/plan.ts")] },
    { path: "cli/test/list.test.ts", imports: [aTarget("cli/test/real-coordinator.ts")] },
    { path: "cli/test/real-coordinator.ts", imports: [] },
  ];
  const mentions = new Map([["cli/test/real-coordinator.ts", ["coordinator/src/main.ts"]]]);
  const tests = ["cli/test/list.test.ts", "archive/src/tar.test.ts"];
  assert.deepEqual(changedTestFiles({ changed: ["coordinator/src/plan.ts"], modules, mentions, tests }), [
    "cli/test/list.test.ts",
  ]);
});

test("runs the tests that read all sources for every change of a package", () => {
  const tests = [
    "hack/checks/docs.test.ts",
    "coordinator/test/metrics-reference.test.ts",
    "agent/src/a.test.ts",
  ];
  assert.deepEqual(changedTestFiles({ changed: ["cli/src/view.ts"], modules: [], tests }), tests.slice(0, 2));
  assert.deepEqual(changedTestFiles({ changed: [], modules: [], tests }), []);
});

function aTarget(target: string) {
  return { target, specifier: target, line: 1 };
}

test("runs the tests of a removed file's importers", () => {
  const modules = [
    {
      path: "cli/src/view.test.ts",
      imports: [{ target: "cli/src/gone.ts", specifier: "./gone.ts", line: 1 }],
    },
  ];
  const tests = ["cli/src/view.test.ts", "archive/src/tar.test.ts"];
  assert.deepEqual(changedTestFiles({ changed: ["cli/src/gone.ts"], modules, tests }), [
    "cli/src/view.test.ts",
  ]);
});
