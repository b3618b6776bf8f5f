import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { driverFor } from "../lab-hosts/host-kinds.ts";
import { planHosts } from "../lab-hosts/lab-plan.ts";
import { type RunResult, run } from "../lib/run.ts";

const LIMIT_MS = 120_000;

/**
 * Runs Vagrant on hack/Vagrantfile. Its state is kept in `home` instead of the home directory and the file's directory.
 */
function vagrant(home: string, args: readonly string[], plan = ""): Promise<RunResult> {
  return run("vagrant", args, {
    env: {
      ...{ VAGRANT_CWD: join(import.meta.dirname, ".."), VAGRANT_HOME: home, HOME: home },
      ...{ VAGRANT_DOTFILE_PATH: join(home, "state"), VAGRANT_CHECKPOINT_DISABLE: "1" },
      FORAGE_LAB_MACHINES: plan,
    },
    timeoutMs: LIMIT_MS,
    allowFailure: true,
  });
}

function temporaryHome(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), "forage-vagrant-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

test("Vagrant accepts hack/Vagrantfile", { timeout: 2 * LIMIT_MS }, async (t) => {
  const { stdout, stderr } = await vagrant(temporaryHome(t), ["validate", "--ignore-provider"]);
  assert.match(stdout, /validated successfully/, stderr);
});

test("Vagrant accepts it for the hosts of a lab, and uses their names", {
  timeout: 4 * LIMIT_MS,
}, async (t) => {
  const home = temporaryHome(t);
  const plan = join(home, "machines.json");
  const hosts = planHosts({
    count: 2,
    coordinatorOwnHost: true,
    gateway: driverFor("vagrant", "none").gateway,
  });
  writeFileSync(plan, JSON.stringify({ lab: "none", hosts, packages: home }));
  const { stdout, stderr } = await vagrant(home, ["validate", "--ignore-provider"], plan);
  assert.match(stdout, /validated successfully/, stderr);
  const known = await vagrant(home, ["ssh-config", "h2"], plan);
  assert.doesNotMatch(known.stderr, /h2/);
  assert.match((await vagrant(home, ["ssh-config", "h3"], plan)).stderr, /h3/);
});
