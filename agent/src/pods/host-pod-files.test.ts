import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { testPodFiles } from "../../test/pod-files-contract.ts";
import { systemClock } from "../clock.ts";
import { LogRotator } from "../logs/log-rotator.ts";
import type { StreamPipes } from "../logs/stream-places.ts";
import type { StreamReader } from "../logs/stream-reader.ts";
import { HostPodFiles, type HostPodFilesOptions } from "./host-pod-files.ts";

testPodFiles("host", (t) => podFiles(t).files);

test("keeps the log of the previous run while the next run starts, and none before it", async (t) => {
  const { files, dir } = podFiles(t);
  for (const attempt of [1, 2, 3, 4]) {
    const { logFile } = await files.prepare("p1", "main", attempt);
    writeFileSync(logFile, `run ${attempt}\n`);
  }
  // Until the start of run 4 has succeeded, run 3 is the present one and run 2 the previous one.
  assert.deepEqual(logsIn(join(dir, "p1", "main")), ["2.log", "3.log", "4.log"]);
  assert.equal(await files.lastLines("p1", "main", 2), "run 2");
  assert.equal(await files.lastLines("p1", "main", 1), "");
});

test("bounds logs that an earlier agent left", async (t) => {
  const { files, dir } = podFiles(t);
  const { logFile } = await files.prepare("p1", "main", 1);
  const rotator = new LogRotator({ clock: systemClock, maxBytes: 1024 });
  t.after(() => rotator.close());
  writeFileSync(logFile, "x".repeat(5_000));
  await new HostPodFiles(dir, rotator).adopt();
  await rotator.check();
  assert.ok(existsSync(`${logFile}.1`), "the log was trimmed");
});

test("finishes the separate streams of earlier runs before the next run, and of all runs before removal", async (t) => {
  const streams = new RecordedStreams();
  const { files } = podFiles(t, { streams });
  await files.prepare("p1", "main", 1);
  const second = await files.prepare("p1", "main", 2, true);
  assert.deepEqual(streams.calls, ["end 1.log", "begin 2.log"]);
  assert.deepEqual(second.streamPipes, PIPES);
  streams.calls.length = 0;
  await files.remove("p1");
  assert.deepEqual(streams.calls.sort(), ["end 1.log", "end 2.log"]);
});

test("continues to read the separate streams of current runs after a restart of the agent", async (t) => {
  const { files, dir, rotator } = podFiles(t);
  for (const attempt of [1, 2]) await files.prepare("p1", "main", attempt);
  const streams = new RecordedStreams();
  await new HostPodFiles(dir, rotator, { streams }).adopt();
  assert.deepEqual(streams.calls, ["sync 2.log"]);
});

test("the last lines include lines that the stream reader has not written yet", async (t) => {
  const streams = new RecordedStreams();
  const { files } = podFiles(t, { streams });
  const { logFile } = await files.prepare("p1", "main", 1, true);
  streams.unwritten.set(logFile, "panic: no disk\n");
  assert.equal(await files.lastLines("p1", "main", 1), "panic: no disk");
});

test("removes all files of a pod, and accepts a second removal", async (t) => {
  const { files, dir } = podFiles(t);
  writeFileSync((await files.prepare("p1", "main", 1)).logFile, "x");
  await files.remove("p1");
  await files.remove("p1");
  assert.deepEqual(readdirSync(dir), []);
});

test("lists the pods that have files", async (t) => {
  const { files } = podFiles(t);
  assert.deepEqual(await files.podUids(), []);
  await files.prepare("p1", "main", 1);
  await files.prepare("p2", "main", 1);
  assert.deepEqual((await files.podUids()).toSorted(), ["p1", "p2"]);
});

test("bounds the other logs if one can't be deleted", async (t) => {
  const errors: unknown[] = [];
  const { files, dir } = podFiles(t, { limitBytes: 50_000, onError: (error) => errors.push(error) });
  for (const pod of ["p1", "p2"]) {
    for (const attempt of [1, 2]) {
      const { logFile } = await files.prepare(pod, "main", attempt);
      writeFileSync(logFile, "x".repeat(60_000));
    }
  }
  const inTheWay = join(dir, "p1", "main", "1.log");
  rmSync(inTheWay);
  mkdirSync(inTheWay);
  await files.limit();
  assert.equal(errors.length, 1);
  assert.deepEqual(logsIn(join(dir, "p2", "main")), ["2.log"]);
});

test("bounds all logs together: deletes logs of ended runs first, then cuts the heads of current logs", async (t) => {
  const removed: string[] = [];
  const { files, dir, rotator } = podFiles(t, {
    limitBytes: 250_000,
    onLimit: (logs) => removed.push(...logs.map(({ path }) => path.slice(-"p1/main/1.log".length))),
  });
  const write = async (pod: string, attempt: number, bytes: number) => {
    const { logFile } = await files.prepare(pod, "main", attempt);
    writeFileSync(logFile, `${"x".repeat(99)}\n`.repeat(bytes / 100));
    await rotator.check();
  };
  await write("p1", 1, 60_000);
  await write("p1", 2, 60_000);
  await write("p2", 1, 60_000);
  await files.limit();
  assert.deepEqual(removed, []);
  await write("p2", 2, 60_000);
  await files.limit();
  assert.deepEqual(removed, ["p1/main/1.log"]);
  assert.deepEqual(logsIn(join(dir, "p1", "main")), ["2.log"]);
  await write("p3", 1, 300_000);
  await files.limit();
  assert.deepEqual(removed.slice(1), ["p2/main/1.log", "p3/main/1.log"]);
  assert.ok(statSync(join(dir, "p3", "main", "1.log")).blocks * 512 < 20_000);
  assert.match(await files.lastLines("p3", "main", 1), /^(x{99}\n)*x{99}$/);
});

test("log growth alone triggers the limit", async (t) => {
  const removed: string[] = [];
  const { files, rotator } = podFiles(t, {
    limitBytes: 200_000,
    onLimit: (logs) => removed.push(...logs.map(({ path }) => path)),
  });
  await files.adopt();
  for (const attempt of [1, 2]) {
    writeFileSync((await files.prepare("p1", "main", attempt)).logFile, "x\n".repeat(60_000));
    await rotator.check();
  }
  await files.limit();
  assert.equal(removed.length, 1);
});

test("reports why a log can't be written, and recovers when it can", async (t) => {
  const { files, dir } = podFiles(t);
  writeFileSync(join(dir, "p1"), "a file in the way");
  await assert.rejects(
    files.prepare("p1", "main", 1),
    /no log can be written to .*p1\/main: not a directory/,
  );
  rmSync(join(dir, "p1"));
  await files.prepare("p1", "main", 1);
});

test("rejects names that lead outside the directory", async (t) => {
  const { files } = podFiles(t);
  for (const name of ["..", "a/b", "", ".x"]) await assert.rejects(files.prepare(name, "main", 1));
});

const PIPES = { stdout: "/pipes/stdout", stderr: "/pipes/stderr" };

/** Records the logs that it is called for. `sync` writes the rest of a log. */
class RecordedStreams implements StreamReader {
  readonly calls: string[] = [];
  readonly unwritten = new Map<string, string>();

  begin(logFile: string): Promise<StreamPipes> {
    this.calls.push(`begin ${basename(logFile)}`);
    return Promise.resolve(PIPES);
  }

  async sync(logFile: string): Promise<void> {
    this.calls.push(`sync ${basename(logFile)}`);
    await appendFile(logFile, this.unwritten.get(logFile) ?? "");
  }

  async end(logFile: string): Promise<void> {
    this.calls.push(`end ${basename(logFile)}`);
  }

  close(): void {}
}

function logsIn(dir: string): string[] {
  return readdirSync(dir)
    .filter((name) => name.endsWith(".log"))
    .sort();
}

function podFiles(
  t: TestContext,
  options: HostPodFilesOptions = {},
): { files: HostPodFiles; dir: string; rotator: LogRotator } {
  const dir = mkdtempSync(join(tmpdir(), "forage-pods-"));
  const rotator: LogRotator = new LogRotator({ clock: systemClock, onGrown: (bytes) => files.grown(bytes) });
  const files = new HostPodFiles(dir, rotator, options);
  t.after(async () => {
    await rotator.close();
    rmSync(dir, { recursive: true });
  });
  return { files, dir, rotator };
}
