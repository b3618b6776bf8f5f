import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  AGENT_ENVIRONMENT,
  AGENT_NODE_OPTIONS,
  COORDINATOR_ENVIRONMENT,
  COORDINATOR_NODE_OPTIONS,
} from "../instance/describe-programs.ts";

const units = join(import.meta.dirname, "..", "..", "systemd");
const NAMES = [
  "forage-coordinator.service",
  "forage-agent.service",
  "forage-logs.service",
  "forage-logs.socket",
  "forage-log-guard.service",
] as const;
const without = existsSync("/usr/bin/systemd-analyze") ? false : "systemd-analyze is not installed";

test("systemd finds nothing wrong with the units", { skip: without }, (t) => {
  const root = aRoot(t);
  assert.equal(verify(root), "");
});

test("systemd would report a fault in the units", { skip: without }, (t) => {
  const root = aRoot(t);
  const path = join(root, "etc/systemd/system", NAMES[0]);
  writeFileSync(path, readFileSync(path, "utf8").replace("RestartSec=2", "RestartSecs=2"));
  assert.match(verify(root), /RestartSecs/);
});

test("coordinator, log reader and log guard are sandboxed", { skip: without }, (t) => {
  for (const [name, threshold] of [
    [NAMES[0], 20],
    [NAMES[2], 20],
    [NAMES[4], 20],
  ] as const) {
    const path = join(aRoot(t), "etc/systemd/system", name);
    const args = ["security", "--offline=true", `--threshold=${threshold}`, path];
    execFileSync("systemd-analyze", args, { stdio: "pipe" });
  }
});

test("systemd watches the main loops of both daemons, and restarts them however they end", () => {
  for (const [name, watchdog] of [
    [NAMES[0], "WatchdogSec=30"],
    // A lost node is Unreachable after 7.5 s, and its pods are evicted 30 s later.
    [NAMES[1], "WatchdogSec=20"],
  ] as const) {
    const unit = readFileSync(join(units, name), "utf8");
    for (const setting of ["Type=notify", "NotifyAccess=all", watchdog, "Restart=always", "LimitCORE=0"])
      assert.ok(unit.includes(`\n${setting}\n`), `${name}: ${setting}`);
    // Containers are not in the unit of the agent, and nothing in it may stop them.
    assert.ok(unit.includes("\nStartLimitIntervalSec=0\n"), name);
  }
});

test("the agent has no mount namespace of its own, which would hide its mounts from containerd", () => {
  const agent = readFileSync(join(units, NAMES[1]), "utf8");
  const settings = agent.split("\n").filter((line) => /^[A-Z]/.test(line));
  const hiding =
    /^(Protect|Private|ReadOnly|ReadWrite|Inaccessible|Bind|TemporaryFileSystem|MountFlags|RootDirectory)/;
  assert.deepEqual(
    settings.filter((line) => hiding.test(line)),
    [],
  );
});

for (const [unit, options, variables] of [
  [NAMES[0], COORDINATOR_NODE_OPTIONS, COORDINATOR_ENVIRONMENT],
  [NAMES[1], AGENT_NODE_OPTIONS, AGENT_ENVIRONMENT],
] as const)
  test(`${unit} starts its program with the measured options`, () => {
    const text = readFileSync(join(units, unit), "utf8");
    const environment = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
    assert.ok(text.includes(`\nExecStart=/usr/lib/forage/node ${options.join(" ")} /`));
    assert.ok(text.includes(`\nEnvironment=${environment.join(" ")}\n`));
  });

test("keys come from systemd's credential store under the names that the programs use", () => {
  const settings = (name: string): string[] => readFileSync(join(units, name), "utf8").split("\n");
  assert.ok(settings(NAMES[0]).includes("LoadCredential=forage-secret-keys"));
  assert.ok(settings(NAMES[1]).includes("LoadCredential=journal-key:forage-journal-key"));
});

// Makes a root directory with the units and the programs that they start.
function aRoot(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), "forage-units-"));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "etc/systemd/system"), { recursive: true });
  mkdirSync(join(root, "usr/lib/forage"), { recursive: true });
  for (const name of NAMES) cpSync(join(units, name), join(root, "etc/systemd/system", name));
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  writeFileSync(join(root, "usr/bin/systemctl"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(root, "usr/lib/forage/node"), "#!/bin/sh\n", { mode: 0o755 });
  return root;
}

function verify(root: string): string {
  const { stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", `--root=${root}`, ...NAMES], {
    encoding: "utf8",
  });
  // The root directory lacks systemd's own units, which doesn't matter here.
  return stderr
    .split("\n")
    .filter((line) => line.includes("forage-") && !/Failed to add dependency|not found/.test(line))
    .join("\n");
}
