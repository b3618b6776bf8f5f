import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { settingsInHowTos } from "../../hack/lib/how-to-settings.ts";
import { readConfig } from "./config.ts";

test("the coordinator accepts the settings that the how-tos show", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-how-to-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const examples = settingsInHowTos("coordinator.yaml");
  assert.ok(examples.length >= 2, "examples are found");
  for (const { page, text } of examples) {
    const file = join(dir, "coordinator.yaml");
    writeFileSync(file, `dataDir: /var/lib/x\n${text}`);
    assert.doesNotThrow(() => readConfig(["--config", file], {}), `${page}: ${text}`);
  }
});
