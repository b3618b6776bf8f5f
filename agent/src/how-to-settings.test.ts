import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { settingsInHowTos } from "../../hack/lib/how-to-settings.ts";
import { readConfig } from "./config.ts";

test("the agent accepts the settings that the how-tos show", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-how-to-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const examples = settingsInHowTos("agent.yaml");
  assert.ok(examples.length >= 2, "examples are found");
  for (const { page, text } of examples) {
    const file = join(dir, "agent.yaml");
    const coordinator = /^coordinator:/m.test(text) ? "" : "coordinator: 10.0.0.1:7600\n";
    writeFileSync(file, `dataDir: /var/lib/x\n${coordinator}${text}`);
    await assert.doesNotReject(readConfig(["--config", file], {}, "host-1"), `${page}: ${text}`);
  }
});
