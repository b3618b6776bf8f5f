import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { conformance } from "../conformance.ts";
import { SYSTEM_DISK } from "./disk.ts";
import { openLevelStore } from "./level-store.ts";

conformance("level", async (options) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-store-"));
  const store = await openLevelStore({ ...options, dir, ballastBytes: 1024 });
  return { store, dispose: async () => rmSync(dir, { recursive: true }) };
});

test("an opening that may not create a store creates no files, which would prevent a restore", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-store-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const openDatabase = (): never => assert.fail("LevelDB makes files");
  const disk = { ...SYSTEM_DISK, openDatabase };
  await assert.rejects(openLevelStore({ dir, clock: new VirtualClock(), create: "refuse", disk }), {
    code: "MISSING",
  });
});
