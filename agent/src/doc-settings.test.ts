import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { settingsInDocs } from "../../hack/lib/doc-settings.ts";
import { readConfig } from "./config.ts";

test("the agent accepts the settings shown in the documentation", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-docs-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const examples = settingsInDocs("agent.yaml");
  assert.ok(examples.length >= 5, "examples are found");
  for (const { page, text } of examples) {
    const file = join(dir, "agent.yaml");
    const coordinator = /^coordinator:/m.test(text) ? "" : "coordinator: 10.0.0.1:7600\n";
    writeFileSync(file, `dataDir: /var/lib/x\n${coordinator}${text}`);
    await assert.doesNotReject(readConfig(["--config", file], {}, "host-1"), `${page}: ${text}`);
  }
});
