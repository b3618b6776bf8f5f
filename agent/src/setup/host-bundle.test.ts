import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { CheckedHost } from "./check/finding.ts";
import { writeHostBundle } from "./host-bundle.ts";

const CANARY = "c4n4ryV4lue";

test("includes existing files, names missing ones, and leaves secrets out", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-host-bundle-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, "host.tar.gz");
  const host = {
    nowMs: () => Date.UTC(2030, 4, 7),
    exists: async (file: string) => readdirSync(dir).some((name) => join(dir, name) === file),
    run: async (file: string, args: readonly string[]) => {
      if (file === "journalctl" && args.includes("--unit=forage-agent"))
        return { ok: true, text: `pulled https://robot:${CANARY}@registry.example/ token=${CANARY}` };
      if (file === "uname") return { ok: true, text: "Linux" };
      return { ok: false, text: `${file}: not found, password=${CANARY}` };
    },
  } as unknown as CheckedHost;
  const settings = async (): Promise<never> => {
    throw new Error("agent.yaml: dataDir: must be set");
  };

  const { problems } = await writeHostBundle(path, { host, settings });

  assert.equal(statSync(path).mode & 0o777, 0o600);
  const read = (name: string) => execFileSync("tar", ["-xzOf", path, `forage-host/${name}`]).toString();
  assert.equal(read("kernel.txt"), "Linux\n");
  assert.match(read("journal/forage-agent.txt"), /^pulled https:\/\/\[left out\]registry\.example/);
  assert.equal(problems.find((it) => it.path === "config.json")?.problem, "agent.yaml: dataDir: must be set");
  assert.match(problems.find((it) => it.path === "units.txt")?.problem ?? "", /^systemctl: not found/);
  assert.doesNotMatch(execFileSync("tar", ["-xzOf", path]).toString(), new RegExp(CANARY));
  await assert.rejects(writeHostBundle(path, { host, settings }), /host\.tar\.gz exists: name another file/);
});
