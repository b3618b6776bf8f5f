import assert from "node:assert/strict";
import { mkdtempSync, rmdirSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ChildRunner } from "../volumes/run-child.ts";
import { HostContent } from "./host-content.ts";
import { WorkspaceLayout } from "./workspace-layout.ts";

const REMAINS_MAX = 1_000;

test("an instance id that would lead out of its directory has no paths", () => {
  const layout = new WorkspaceLayout("/root");
  for (const id of ["..", ".discarded", "a/../../b", ""]) {
    assert.throws(() => layout.home(id), { code: "INVALID" }, id);
    assert.throws(() => layout.discardedOf(id), { code: "INVALID" }, id);
  }
});

test("disposes of no further workspace while the files of 1,000 others remain", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "forage-remains-"));
  t.after(() => rmSync(root, { recursive: true }));
  const layout = new WorkspaceLayout(root);
  const discarded: string[] = [];
  const content = new HostContent({
    ...{ layout, children: new ChildRunner(), warn: () => undefined },
    records: { discard: async (id) => void discarded.push(id) },
    connect: () => Promise.reject(new Error("not used")),
    git: {
      ...{ proxyUrl: "", refuse: () => undefined },
      secrets: { read: async () => ({}), write: async () => undefined },
    },
  });
  const ids = Array.from({ length: REMAINS_MAX }, (_, index) => `old-${index}`);
  await Promise.all(ids.map((id) => mkdir(layout.discardedOf(id), { recursive: true })));
  const signal = new AbortController().signal;
  await assert.rejects(content.dispose("new", signal), {
    code: "UNAVAILABLE",
    message: "the files of 1000 other workspaces must be deleted first",
  });
  // An interrupted disposal is completed nevertheless.
  await content.dispose("old-7", signal);
  rmdirSync(layout.discardedOf("old-0"));
  await content.dispose("new", signal);
  assert.deepEqual(discarded, ["old-7", "new"]);
});
