import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { type TestContext, test } from "node:test";

const MAIN = join(import.meta.dirname, "../src/log-guard/main.ts");
const LIMIT = { timeout: 180_000 };
const CHUNK = Buffer.from(`${"x".repeat(99)}\n`.repeat(10_000));
const MIB = 2 ** 20;

test("without an agent, logs stay bounded and keep their newest lines", LIMIT, async (t) => {
  const dataDir = await aDirectory(t);
  const dir = join(dataDir, "pods", "uid", "main");
  await mkdir(dir, { recursive: true });
  const log = join(dir, "1.log");
  await using writer = await open(log, "a", 0o600);
  await writer.write(CHUNK);
  const guard = await startGuard(t, dataDir);
  let most = 0;
  // Writes 250 MB, slower than the guard's checks, to be independent of process scheduling.
  for (let written = 0; written < 250 * MIB; written += CHUNK.length) {
    await writer.write(CHUNK);
    most = Math.max(most, await bytesOnDisk(dir));
    if (most > 60 * MIB) await untilBelow(dir, 40 * MIB);
  }
  await writer.write("the last line\n");
  await untilBelow(dir, 40 * MIB);
  guard.kill("SIGTERM");
  assert.deepEqual(await once(guard, "exit"), [0, null]);
  assert.ok(most < 150 * MIB, `${Math.round(most / MIB)} MiB`);
  assert.match((await readFile(log)).subarray(-30).toString(), /x\nthe last line\n$/);
});

test("rejects invalid settings and names them", LIMIT, async () => {
  const guard = spawn(execPath, [MAIN, "--colour=red"], { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  guard.stderr.on("data", (bytes) => {
    stderr += bytes;
  });
  assert.deepEqual(await once(guard, "close"), [2, null]);
  assert.match(stderr, /colour/);
});

async function aDirectory(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "forage-log-guard-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

async function startGuard(t: TestContext, dataDir: string): Promise<ChildProcess> {
  const guard = spawn(execPath, [MAIN, `--data-dir=${dataDir}`, "--coordinator=127.0.0.1:1"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => guard.kill("SIGKILL"));
  await once(guard.stdout, "data");
  return guard;
}

async function untilBelow(dir: string, bytes: number): Promise<void> {
  while ((await bytesOnDisk(dir)) > bytes) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function bytesOnDisk(dir: string): Promise<number> {
  const names = await readdir(dir);
  const found = await Promise.all(names.map((name) => stat(join(dir, name)).catch(() => undefined)));
  return found.reduce((sum, it) => sum + (it?.blocks ?? 0) * 512, 0);
}
