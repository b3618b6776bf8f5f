import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "../clock.ts";
import { LogKeeper } from "../logs/log-keeper.ts";
import { HostPodFiles } from "./host-pod-files.ts";

test("each attempt gets a log, and only the one before stays beside it", async (t) => {
  const { files, dir } = podFiles(t);
  for (const attempt of [1, 2, 3]) {
    const { logFile } = await files.prepare("p1", "main", attempt);
    writeFileSync(logFile, `run ${attempt}\n`);
  }
  assert.deepEqual(logsIn(join(dir, "p1", "main")), ["2.log", "3.log"]);
  assert.equal(await files.lastLines("p1", "main", 2), "run 2");
  assert.equal(await files.lastLines("p1", "main", 1), "");
});

test("logs that an earlier run of the agent left are bounded again", async (t) => {
  const { files, dir } = podFiles(t);
  const { logFile } = await files.prepare("p1", "main", 1);
  const keeper = new LogKeeper({ clock: systemClock, maxBytes: 1024 });
  t.after(() => keeper.close());
  writeFileSync(logFile, "x".repeat(5_000));
  await new HostPodFiles(dir, keeper).takeOver();
  await keeper.check();
  assert.ok(existsSync(`${logFile}.1`), "the log was trimmed");
});

test("nothing is left of a removed pod, and removing again is fine", async (t) => {
  const { files, dir } = podFiles(t);
  writeFileSync((await files.prepare("p1", "main", 1)).logFile, "x");
  await files.remove("p1");
  await files.remove("p1");
  assert.deepEqual(readdirSync(dir), []);
});

test("names that lead elsewhere are refused", async (t) => {
  const { files } = podFiles(t);
  for (const name of ["..", "a/b", "", ".x"]) await assert.rejects(files.prepare(name, "main", 1));
});

function logsIn(dir: string): string[] {
  return readdirSync(dir)
    .filter((name) => name.endsWith(".log"))
    .sort();
}

function podFiles(t: TestContext): { files: HostPodFiles; dir: string } {
  const dir = mkdtempSync(join(tmpdir(), "forage-pods-"));
  const keeper = new LogKeeper({ clock: systemClock });
  t.after(async () => {
    await keeper.close();
    rmSync(dir, { recursive: true });
  });
  return { files: new HostPodFiles(dir, keeper), dir };
}
