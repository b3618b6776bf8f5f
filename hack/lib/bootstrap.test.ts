import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

const SCRIPT = join(import.meta.dirname, "bootstrap.sh");
const LOCK = JSON.stringify({
  packages: {
    "node_modules/@forage/common": { resolved: "common", link: true },
    "node_modules/@forage/sim": { resolved: "sim", link: true },
  },
});

test("packages are current while npm's record is newer than the lock file and all workspaces are linked", (t) => {
  const { dir, isCurrent } = aCheckout(t);
  assert.equal(isCurrent(), true);
  touch(join(dir, "package-lock.json"), 20);
  assert.equal(isCurrent(), false, "the lock file has changed");
});

test("packages are not current while a workspace has no link", (t) => {
  const { dir, isCurrent } = aCheckout(t);
  rmSync(join(dir, "node_modules/@forage/sim"));
  assert.equal(isCurrent(), false);
});

/** Returns a checkout with two workspaces, whose packages are current. */
function aCheckout(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-checkout-"));
  t.after(() => rmSync(dir, { recursive: true }));
  mkdirSync(join(dir, "node_modules/@forage"), { recursive: true });
  for (const workspace of ["common", "sim"]) {
    mkdirSync(join(dir, workspace));
    symlinkSync(join(dir, workspace), join(dir, "node_modules/@forage", workspace));
  }
  for (const [name, text] of [
    ["package.json", "{}"],
    ["package-lock.json", LOCK],
    ["node_modules/.package-lock.json", "{}"],
  ] as const)
    writeFileSync(join(dir, name), text);
  touch(join(dir, "package.json"), 0);
  touch(join(dir, "package-lock.json"), 0);
  touch(join(dir, "node_modules/.package-lock.json"), 10);
  const script = 'set -u; . "$1"; FORAGE_NODE=$2; packages_are_current';
  const isCurrent = (): boolean =>
    spawnSync("bash", ["-c", script, "bash", SCRIPT, process.execPath], { cwd: dir }).status === 0;
  return { dir, isCurrent };
}

/** Sets the modification time of a file, in seconds. */
function touch(path: string, second: number): void {
  utimesSync(path, 1_700_000_000 + second, 1_700_000_000 + second);
}
