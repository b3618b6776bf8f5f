import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { openLevelStore } from "./level-store.ts";

conformance("level", async (options) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-store-"));
  const store = await openLevelStore({ ...options, dir, ballastBytes: 1024 });
  return { store, dispose: async () => rmSync(dir, { recursive: true }) };
});
