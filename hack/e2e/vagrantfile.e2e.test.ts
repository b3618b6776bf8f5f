import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../lib/run.ts";

const LIMIT_MS = 120_000;

test("Vagrant accepts hack/Vagrantfile", { timeout: 2 * LIMIT_MS }, async (t) => {
  // Vagrant keeps state in the home directory and beside the file.
  const home = mkdtempSync(join(tmpdir(), "forage-vagrant-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const { stdout } = await run("vagrant", ["validate", "--ignore-provider"], {
    env: {
      ...{ VAGRANT_CWD: join(import.meta.dirname, ".."), VAGRANT_HOME: home, HOME: home },
      ...{ VAGRANT_DOTFILE_PATH: join(home, "state"), VAGRANT_CHECKPOINT_DISABLE: "1" },
    },
    timeoutMs: LIMIT_MS,
  });
  assert.match(stdout, /validated successfully/);
});
