import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { bundledProgram } from "../../hack/bundling/bundled-program.ts";
import { freePort } from "../../hack/lib/free-ports.ts";
import { readHelp } from "../src/config.ts";
import { openLevelStore } from "../src/store/index.ts";
import { systemClock } from "../src/time/clock.ts";
import { until } from "./support/until.ts";

const COORDINATOR = await bundledProgram("coordinator");

test("prints help for the program and for each task without a configuration", async (t) => {
  const { code, stdout } = await run(t, ["--help"]);
  assert.equal(code, 0);
  assert.match(stdout, /^usage: forage-coordinator --config/);
  for (const task of ["backup", "restore", "verify", "migrate", "salvage"])
    assert.match(readHelp([task, "-h"]) ?? "", new RegExp(`^usage: forage-coordinator ${task}`));
  assert.equal(readHelp(["restore", "file"]), undefined);
});

test("reports a missing store in one line, and creates none", async (t) => {
  const dir = tempDir(t);
  for (const task of [["verify"], ["backup", join(dir, "backup")]]) {
    const { code, stderr } = await run(t, [...task, "--data-dir", dir]);
    assert.equal(code, 1);
    assert.match(stderr, /^forage-coordinator: there is no store in [^\n]*\n$/);
  }
  assert.deepEqual(readdirSync(join(dir, "store")), []);
});

test("prints the usage for wrong arguments, and exits with 2", async (t) => {
  const { code, stderr } = await run(t, ["restore", "--data-dir", tempDir(t)]);
  assert.equal(code, 2);
  assert.match(stderr, /restore needs exactly one file\nusage: forage-coordinator restore FILE/);
});

test("exits with 0 after a task and with 1 after a failure, and states what to do", async (t) => {
  const dir = tempDir(t);
  const [data, other, file] = [join(dir, "data"), join(dir, "other"), join(dir, "backup")];
  await (await openLevelStore({ dir: join(data, "store"), clock: systemClock })).close();
  const held = await openLevelStore({ dir: join(other, "store"), clock: systemClock });
  t.after(() => held.close());
  for (const [code, output, ...line] of [
    [0, /"records":0/, "backup", file, "--data-dir", data],
    [
      1,
      /^forage-coordinator: the backup .* exists already: give another name\n$/,
      "backup",
      file,
      "--data-dir",
      data,
    ],
    [
      1,
      /^forage-coordinator: the backup can't be written to [^;]*: ENOENT[^\n]*\n$/,
      "backup",
      join(dir, "no", "b"),
      "--data-dir",
      data,
    ],
    [1, /is open in another process: stop the coordinator/, "verify", "--data-dir", other],
    [1, /is not empty: a backup is restored into an empty directory/, "restore", file, "--data-dir", data],
    [
      0,
      /"replaced":"[^"]*store\.replaced-[^"]*","started":false/,
      "restore",
      file,
      "--replace",
      "--yes",
      "--data-dir",
      data,
    ],
    [
      2,
      /Replace the store in .*\n.*no terminal for the confirmation: repeat the command with --yes/,
      "restore",
      file,
      "--replace",
      "--data-dir",
      data,
    ],
    [1, /can't read the backup/, "restore", join(dir, "missing"), "--data-dir", join(dir, "new")],
    [2, /there is no task "check"/, "check", "--data-dir", data],
    [2, /--epoch is only for restore/, "verify", "--epoch", "3", "--data-dir", data],
  ] as const) {
    const result = await run(t, line);
    assert.equal(result.code, code, result.stderr);
    assert.match(result.stdout + result.stderr, output);
  }
});

test("does not start a cluster whose store is lost with an empty store, unless requested", async (t) => {
  const dir = tempDir(t);
  mkdirSync(join(dir, "authority"), { mode: 0o700 });
  writeFileSync(join(dir, "authority", "ca.pem"), "", { mode: 0o600 });
  const refused = await run(t, ["--data-dir", dir]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^forage-coordinator: there is no store in .*restore FILE.*--new-store.*\n$/);
  const begun = await run(t, ["--data-dir", dir, "--new-store"]);
  // The store was created. This test has no real authority.
  assert.match(begun.stderr, /^forage-coordinator: the certificate can't be read[^\n]*\n$/);
  assert.ok(readdirSync(join(dir, "store")).includes("db"));
  const again = await run(t, ["--data-dir", dir, "--new-store"]);
  assert.equal(again.code, 2);
  assert.match(again.stderr, /--new-store: a store already exists in/);
});

test("keeps serving and can end with a log on a full disk", async (t) => {
  const dir = tempDir(t);
  const port = await freePort();
  const full = openSync("/dev/full", "w");
  const args = ["--data-dir", dir, "--grpc", "127.0.0.1:0", "--http", `127.0.0.1:${port}`];
  const child = spawn(process.execPath, [COORDINATOR, ...args], { stdio: ["ignore", full, "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  closeSync(full);
  const ready = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until("the coordinator is ready", ready);
  child.kill("SIGTERM");
  assert.deepEqual(await once(child, "exit"), [0, null]);
});

test("continues the numbers of backups in its data directory", async (t) => {
  const dir = tempDir(t);
  mkdirSync(join(dir, "backups"), { mode: 0o700 });
  writeFileSync(join(dir, "backups", "store-20290102T000000Z.backup"), "");
  const port = await freePort();
  const args = ["--data-dir", dir, "--grpc", "127.0.0.1:0", "--http", `127.0.0.1:${port}`];
  const child = spawn(process.execPath, [COORDINATOR, ...args], { stdio: ["ignore", "ignore", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  let metrics = "";
  await until("the coordinator serves metrics", async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
    metrics = (await answer?.text()) ?? "";
    return answer?.ok === true;
  });
  assert.match(metrics.match(/^forage_backup_last_.*$/m)?.[0] ?? "", / 1862006400$/);
});

test("starts on a full disk, reports it, and becomes ready once there is space", async (t) => {
  if (process.getuid?.() !== 0) return t.skip("mounting a small file system takes root");
  // The mount disappears with its namespace, however the process ends.
  const script = 'mount -t tmpfs -o size=160m none "$1" && exec "$2" "$3" "$1"';
  const scenario = new URL("full-disk-start-scenario.ts", import.meta.url).pathname;
  const args = ["--mount", "sh", "-c", script, "sh", tempDir(t), process.execPath, scenario];
  await promisify(execFile)("unshare", args, { timeout: 120_000 });
});

async function run(t: TestContext, args: readonly string[]) {
  const child = spawn(process.execPath, [COORDINATOR, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout.setEncoding("utf8").toArray(),
    child.stderr.setEncoding("utf8").toArray(),
    once(child, "close"),
  ]);
  return { code, stdout: stdout.join(""), stderr: stderr.join("") };
}

function tempDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-program-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
