import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { userOf } from "../src/sessions/container-files.ts";

/** Runs the command as the agent's program does, without the rest of the agent. */
const script = `import { copyFiles } from ${JSON.stringify(join(import.meta.dirname, "../src/sessions/copy-files.ts"))};
process.exitCode = await copyFiles(process.argv.slice(1));`;

test("reads and writes files as the container's user, in its groups, and only below the root", (t) => {
  const root = mkdtempSync(join(tmpdir(), "forage-copy-test-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  chmodSync(root, 0o755);
  for (const [name, gid, mode] of [
    ["open", 1234, 0o777],
    ["shared", 4321, 0o770],
    ["closed", 0, 0o755],
  ] as const) {
    mkdirSync(join(root, name));
    chownSync(join(root, name), 0, gid);
    chmodSync(join(root, name), mode);
  }
  writeFileSync(join(root, "of-root"), "secret", { mode: 0o600 });
  writeFileSync(join(root, "of-all"), "known", { mode: 0o644 });
  const copy = (direction: "out" | "into", path: string, input: Buffer = Buffer.alloc(0)) => {
    const fd = openSync(root, "r");
    const args = ["--input-type=module", "--eval", script, direction, path, "1234", "1234", "1234,4321"];
    const result = spawnSync(process.execPath, args, { input, stdio: ["pipe", "pipe", "pipe", fd] });
    closeSync(fd);
    return { code: result.status, stdout: result.stdout, stderr: result.stderr.toString() };
  };

  assert.match(copy("out", "/of-root").stderr, /the container's user may not do this \(EACCES\)/);
  const out = copy("out", "/of-all");
  assert.equal(out.code, 0, out.stderr);
  for (const directory of ["open", "shared"]) {
    const into = copy("into", `/${directory}/new`, out.stdout);
    assert.equal(into.code, 0, into.stderr);
    assert.equal(readFileSync(join(root, directory, "new"), "utf8"), "known");
    assert.equal(statSync(join(root, directory, "new")).uid, 1234);
  }
  const refused = copy("into", "/closed/new", out.stdout);
  assert.deepEqual([refused.code, /may not do this/.test(refused.stderr)], [1, true]);
});

test("reads the user of a process from the kernel", () => {
  const status = "Name:\tx\nUid:\t7\t8\t9\t10\nGid:\t1\t2\t3\t4\nFDSize:\t64\nGroups:\t20 30 \nNStgid:\t1\n";
  assert.deepEqual(userOf(status), ["7", "1", "20,30"]);
  assert.deepEqual(userOf("Uid:\t0\t0\nGid:\t0\t0\nGroups:\t\n"), ["0", "0", ""]);
  assert.throws(() => userOf("Name:\tx\n"), /unknown/);
});
