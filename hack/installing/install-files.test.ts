import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bundlePrograms, PROGRAMS } from "../bundling/bundle-programs.ts";
import { loadCompiled } from "../bundling/load-compiled.ts";
import { type InstallFilesOptions, installFiles, removeFiles } from "./install-files.ts";

const checkout = join(import.meta.dirname, "..", "..");

test("installed files run without the sources, and configuration survives an upgrade and a removal", async (t) => {
  await bundlePrograms({ root: checkout, outDir: join(checkout, "dist"), programs: PROGRAMS });
  const root = mkdtempSync(join(tmpdir(), "forage-install-"));
  t.after(() => rmSync(root, { recursive: true }));
  const options: InstallFilesOptions = {
    checkout,
    root,
    parts: ["coordinator", "agent"],
    node: process.execPath,
    nerdctl: "/bin/true",
    envoy: "/bin/true",
  };
  installFiles(options);

  // A daemon that has loaded all its code reports a wrong setting first.
  const node = join(root, "usr/lib/forage/node");
  for (const part of options.parts) {
    const config = join(root, "wrong.yaml");
    writeFileSync(config, "nonsense: true\n");
    const { status, stderr } = spawnSync(
      node,
      [join(root, `usr/lib/forage/${part}.mjs`), "--config", config],
      {
        encoding: "utf8",
        cwd: "/",
      },
    );
    assert.match(stderr, /nonsense/, part);
    assert.notEqual(status, 0);
  }
  assert.match(
    spawnSync(node, [join(root, "usr/lib/forage/forage.mjs"), "--help"], { encoding: "utf8" }).stdout,
    /forage/,
  );
  assert.equal(loadCompiled(join(root, "usr/lib/forage/forage")).fromCache, true);
  const reader = spawnSync(node, [join(root, "usr/lib/forage/logs.mjs")], { encoding: "utf8" });
  assert.match(reader.stderr, /--dir DIR/);
  const guard = spawnSync(node, [join(root, "usr/lib/forage/log-guard.mjs"), "--nonsense"], {
    encoding: "utf8",
  });
  assert.match(guard.stderr, /nonsense/);
  const launcher = join(root, "usr/lib/forage/forage-nomad-driver");
  assert.equal(statSync(launcher).mode & 0o777, 0o755);
  // The paths are those of the installed host, so they are replaced by the test's.
  const driver = readFileSync(launcher, "utf8").replaceAll("/usr/lib/forage/", join(root, "usr/lib/forage/"));
  const refusal = spawnSync("/bin/sh", ["-c", driver], { encoding: "utf8" });
  assert.equal(refusal.status, 1);
  assert.match(refusal.stderr, /a plugin that Nomad starts by itself/);
  const socket = join(root, "usr/lib/systemd/system/forage-logs.socket");
  assert.equal(existsSync(socket), true);
  for (const program of ["nerdctl", "envoy"])
    assert.equal(statSync(join(root, "usr/lib/forage", program)).mode & 0o777, 0o755, program);

  const config = join(root, "etc/forage/agent.yaml");
  writeFileSync(config, "mine: true\n");
  installFiles(options);
  removeFiles(root, ["agent"]);
  assert.equal(existsSync(socket), false);
  assert.equal(existsSync(node), true);
  removeFiles(root, ["coordinator"]);
  assert.equal(existsSync(node), false);
  assert.equal(readFileSync(config, "utf8"), "mine: true\n");
});
