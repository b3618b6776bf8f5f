import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const text = (path: string): string => readFileSync(new URL(path, root), "utf8");

test("lists exactly the metrics that coordinator and agent register", () => {
  const sources = globSync("{coordinator,agent}/src/**/*.ts", { cwd: root.pathname }).filter(
    (path) => !path.endsWith(".test.ts"),
  );
  const registered = new Set(
    sources
      .map(text)
      .filter((source) => /from "prom-client["/]/.test(source))
      .flatMap((source) => [...source.matchAll(/"(forage_\w+)"/g)].map(([, name]) => name)),
  );
  const documented = new Set(
    [...text("docs/reference/metrics.md").matchAll(/^\| `(forage_\w+)`/gm)].map(([, name]) => name),
  );
  assert.ok(registered.size > 20);
  assert.deepEqual([...documented].sort(), [...registered].sort());
});
