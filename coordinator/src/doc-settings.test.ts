import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { settingsInDocs } from "../../hack/lib/doc-settings.ts";
import { readConfig } from "./config.ts";

test("accepts the settings in the documentation", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-docs-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const examples = settingsInDocs("coordinator.yaml");
  assert.ok(examples.length >= 8, "examples are found");
  for (const { page, text } of examples) {
    const file = join(dir, "coordinator.yaml");
    writeFileSync(file, `dataDir: /var/lib/x\n${text}`);
    assert.doesNotThrow(() => readConfig(["--config", file], {}), `${page}: ${text}`);
  }
});
