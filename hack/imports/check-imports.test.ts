import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { findCycles, findFolderCycles } from "./find-cycles.ts";
import { findViolations } from "./import-rules.ts";
import { readSources } from "./read-sources.ts";
import { scanImports } from "./scan-imports.ts";

test("imports are found in statements, exports, calls and types, not in text", () => {
  const source = [
    'import a from "a";',
    "import {\n  b,\n  type C,\n} from './b.ts';",
    'export * from "./c.ts";',
    'const d = await import("./d.ts");',
    'let e: import("./e.ts").E;',
    'import "./f.ts";',
    'const text = "import g from g";',
    "export const h = 1;",
    'log("from", "nowhere");',
  ].join("\n");

  const found = scanImports(source);

  assert.deepEqual(
    found.map(({ specifier, line }) => `${specifier}:${line}`),
    ["a:1", "./b.ts:2", "./c.ts:6", "./d.ts:7", "./e.ts:8", "./f.ts:9"],
  );
});

test("imports in the allowed direction pass", (t) => {
  const root = aTree(t, {
    "coordinator/src/a.ts":
      'import { readFileSync } from "node:fs";\nimport { s } from "@forage/scheduler";\nimport x from "x";',
    "coordinator/test/a.test.ts": 'import { withHost } from "../../hack/lib/host.ts";',
    "scheduler/test/a.ts": 'import { c } from "@forage/common/c";',
    "hack/lib/host.ts": 'import { P } from "@forage/proto/p";',
  });

  assert.deepEqual(findViolations(readSources(root)), []);
});

test("each wrong direction is named with its place", (t) => {
  const root = aTree(t, {
    "coordinator/src/a.ts": 'import "@forage/agent";',
    "coordinator/src/b.ts": 'import "../../scheduler/src/index.ts";',
    "coordinator/src/c.ts": '\nimport { withHost } from "../../hack/lib/host.ts";',
    "coordinator/src/d.ts": 'import { aNode } from "./d.test.ts";',
    "coordinator/src/e.ts": 'import y from "y/deep";\nimport "fs";',
    "coordinator/src/f.ts": 'import "@forage/cli/manifest/document";',
    "coordinator/dashboard/page.tsx": 'import "@forage/cli/manifest/document";',
    "coordinator/dashboard/manifest/a.ts":
      'import "@forage/cli/manifest/document";\nimport "@forage/cli/manifest/bundles";',
    "scheduler/src/index.ts": 'import type { P } from "@forage/proto/p";\nimport "@forage/common/c";',
    "scheduler/test/a.ts": 'import type { P } from "@forage/proto/p";',
  });

  assert.deepEqual(findViolations(readSources(root)), [
    "coordinator/dashboard/manifest/a.ts:2: coordinator must not import cli (@forage/cli/manifest/bundles)",
    "coordinator/dashboard/page.tsx:1: coordinator must not import cli (@forage/cli/manifest/document)",
    "coordinator/src/a.ts:1: coordinator must not import agent (@forage/agent)",
    "coordinator/src/b.ts:1: import another package by its name, not its path (../../scheduler/src/index.ts)",
    "coordinator/src/c.ts:2: coordinator must not import hack (../../hack/lib/host.ts)",
    "coordinator/src/d.ts:1: sources don't import tests (./d.test.ts)",
    "coordinator/src/e.ts:1: coordinator/package.json doesn't declare y (y/deep)",
    "coordinator/src/e.ts:2: write node:fs (fs)",
    "coordinator/src/f.ts:1: coordinator must not import cli (@forage/cli/manifest/document)",
    "scheduler/src/index.ts:1: scheduler must not import proto (@forage/proto/p)",
    "scheduler/src/index.ts:2: scheduler must not import common (@forage/common/c)",
    "scheduler/test/a.ts:1: scheduler must not import proto (@forage/proto/p)",
  ]);
});

test("a cycle is shown from its start back to it, also across packages", (t) => {
  const root = aTree(t, {
    "coordinator/src/a.ts": 'import "./b.ts";',
    "coordinator/src/b.ts": 'import type { C } from "./c.ts";\nimport "./leaf.ts";',
    "coordinator/src/c.ts": 'import { S } from "@forage/scheduler";\nimport "./leaf.ts";',
    "coordinator/src/leaf.ts": "",
    "scheduler/src/index.ts": 'import "../../coordinator/src/b.ts";',
  });

  const knot = ["coordinator/src/b.ts", "coordinator/src/c.ts", "scheduler/src/index.ts"];
  const [cycle = [], ...others] = findCycles(readSources(root).modules);
  assert.deepEqual(others, []);
  assert.deepEqual(new Set(cycle), new Set(knot));
  assert.equal(cycle.at(0), cycle.at(-1));
});

function aTree(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "forage-imports-"));
  t.after(() => rmSync(root, { recursive: true }));
  const manifests = {
    "coordinator/package.json": {
      name: "@forage/coordinator",
      dependencies: { x: "1", "@forage/scheduler": "1" },
    },
    "scheduler/package.json": { name: "@forage/scheduler", exports: { ".": "./src/index.ts" } },
    "agent/package.json": { name: "@forage/agent" },
    "cli/package.json": {
      name: "@forage/cli",
      exports: { "./manifest/document": "./src/manifest/document.ts" },
    },
    "common/package.json": { name: "@forage/common", exports: { "./*": "./src/*.ts" } },
    "proto/package.json": { name: "@forage/proto", exports: { "./*": "./gen/*.ts" } },
  };
  const texts = Object.entries(manifests).map(
    ([path, manifest]) => [path, JSON.stringify(manifest)] as const,
  );
  for (const [path, text] of [...texts, ...Object.entries(files)]) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

test("finds folders that import one another, except through tests and the files above them", (t) => {
  const root = aTree(t, {
    "coordinator/src/main.ts": 'import "./api/a.ts";\nimport "./store/s.ts";',
    "coordinator/src/api/a.ts": 'import "../store/s.ts";',
    "coordinator/src/store/s.ts": 'import "../time/t.ts";',
    "coordinator/src/store/s.test.ts": 'import "../api/a.ts";',
    "coordinator/src/time/t.ts": "",
  });
  const modules = () => readSources(root).modules;

  assert.deepEqual(findFolderCycles("coordinator/src", modules()), []);
  writeFileSync(join(root, "coordinator/src/time/t.ts"), 'import "../api/b.ts";');
  assert.deepEqual(findFolderCycles("coordinator/src", modules()), [["api", "store", "time", "api"]]);
});
