import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { unmountBelow } from "../../hack/lib/mounts.ts";
import { run } from "../../hack/lib/run.ts";
import { LogReader } from "../src/log-reader/log-reader.ts";
import { serveRequests } from "../src/log-reader/serve-requests.ts";
import { linkOf, readerSocket, streamPipes } from "../src/logs/stream-places.ts";
import { SocketStreamReader } from "../src/logs/stream-reader.ts";
import { until } from "./until.ts";

function given(t: TestContext, base = mkdtempSync(join(tmpdir(), "forage-reader-"))) {
  const dir = join(base, "log-streams");
  const logFile = join(base, "pods", "p", "main", "1.log");
  mkdirSync(join(logFile, ".."), { recursive: true });
  const errors: unknown[] = [];
  const lives: { close(): void }[] = [];
  const start = async () => {
    const reader = new LogReader({ dir, nowMs: Date.now, onError: (_, error) => errors.push(error) });
    reader.resume();
    const server = await serveRequests({
      at: readerSocket(dir),
      answer: (request) => reader.answer(request),
    });
    const close = () => {
      reader.close();
      server.close();
    };
    lives.push({ close });
    return { reader, close };
  };
  const client = new SocketStreamReader(dir);
  t.after(async () => {
    client.close();
    for (const life of lives) life.close();
    await unmountBelow(base);
    rmSync(base, { recursive: true, force: true });
    assert.deepEqual(errors, []);
  });
  const texts = () =>
    readFileSync(logFile, "utf8")
      .split("\n")
      .map((line) => line.slice(25));
  return { base, dir, logFile, client, start, texts };
}

test("lines written without a reader are kept for one, even if their writer has ended", async (t) => {
  const { dir, logFile, client, start, texts } = given(t);
  const first = await start();
  const pipes = await client.begin(logFile);
  // A container has both ends open, so that writing never fails.
  const [out, err] = [openSync(pipes.stdout, "r+"), openSync(pipes.stderr, "r+")];
  writeSync(out, "one\n");
  await client.sync(logFile);
  assert.deepEqual(texts(), ["stdout F one", ""]);
  first.close();
  writeSync(err, "two\n");
  writeSync(out, "three");
  closeSync(out);
  closeSync(err);
  const second = await start();
  assert.equal(second.reader.size, 1);
  await client.sync(logFile);
  assert.deepEqual(texts().sort(), ["", "stderr F two", "stdout F one", "stdout P three"]);
  await client.end(logFile);
  assert.equal(second.reader.size, 0);
  assert.deepEqual(readdirSync(dir), ["reader.sock"]);
});

test("sync and drop respond when all output is in the log", async (t) => {
  const { logFile, client, start, texts } = given(t);
  const { reader } = await start();
  const { stdout } = await client.begin(logFile);
  const out = openSync(stdout, "r+");
  // There is no turn of the event loop in between.
  writeSync(out, "one\n");
  reader.answer({ kind: "sync", logFile });
  assert.deepEqual(texts(), ["stdout F one", ""]);
  writeSync(out, "two\n");
  closeSync(out);
  reader.answer({ kind: "drop", logFile });
  assert.deepEqual(texts(), ["stdout F one", "stdout F two", ""]);
});

test("a reader stops by itself when both streams have ended", async (t) => {
  const { dir, logFile, client, start, texts } = given(t);
  const { reader } = await start();
  const pipes = await client.begin(logFile);
  const [out, err] = [openSync(pipes.stdout, "r+"), openSync(pipes.stderr, "r+")];
  writeSync(err, "x\n");
  closeSync(out);
  closeSync(err);
  await until("it stops", () => reader.size === 0);
  assert.deepEqual(texts(), ["stderr F x", ""]);
  assert.equal(existsSync(linkOf(dir, logFile)), false);
  await client.sync(logFile);
  await client.end(logFile);
});

test("without a reader, begin fails and leaves no files", async (t) => {
  const { dir, logFile, client } = given(t);
  await assert.rejects(client.begin(logFile), /forage-logs can't be reached/);
  assert.deepEqual(readdirSync(dir), []);
  assert.deepEqual(readdirSync(join(logFile, "..")), []);
  await client.sync(logFile);
  await client.end(logFile);
});

test("rejects a second reader, and replaces one that was killed", async (t) => {
  const { dir, start } = given(t);
  await start();
  await assert.rejects(start(), /another reader listens/);
  const other = given(t);
  mkdirSync(other.dir);
  writeFileSync(readerSocket(other.dir), "");
  await other.start();
  assert.ok(existsSync(readerSocket(dir)));
});

for (const [what, request, expected] of [
  ["no JSON", "hello\n", /error/],
  ["no kind", '{"logFile":"/a/1.log"}\n', /a request has kind and logFile/],
  ["another kind", '{"kind":"x","logFile":"/a/1.log"}\n', /there is no such request/],
  ["what is no log", '{"kind":"follow","logFile":"/etc/passwd"}\n', /is not a log/],
  ["a log without pipes", '{"kind":"follow","logFile":"/nowhere/1.log"}\n', /ENOENT/],
  ["too much", `${"x".repeat(9_000)}\n`, /^$/],
] as const) {
  test(`a request that is ${what} gets a response and has no effect`, async (t) => {
    const { dir, logFile, client, start } = given(t);
    await start();
    const answer = await new Promise<string>((resolve) => {
      let text = "";
      const socket = connect(readerSocket(dir), () => socket.write(request));
      socket.on("data", (part) => {
        text += part;
      });
      socket.on("error", () => undefined);
      socket.on("close", () => resolve(text));
    });
    assert.match(answer, expected);
    await client.begin(logFile);
  });
}

test("does not read paths that are not pipes", async (t) => {
  const { logFile, start } = given(t);
  const { reader } = await start();
  const { stdout, stderr } = streamPipes(logFile);
  mkdirSync(join(stdout, ".."));
  writeFileSync(stdout, "");
  execFileSync("mkfifo", [stderr]);
  assert.throws(() => reader.answer({ kind: "follow", logFile }), /is not a FIFO/);
  assert.equal(reader.size, 0);
});

test("a full disk blocks no container: lost lines are counted and reported", async (t) => {
  const base = mkdtempSync(join(tmpdir(), "forage-reader-"));
  await run("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", base]);
  const { logFile, client, start, texts } = given(t, base);
  await start();
  const pipes = await client.begin(logFile);
  const out = openSync(pipes.stdout, "r+");
  writeSync(out, "before\n");
  await client.sync(logFile);
  const filler = join(base, "filler");
  assert.throws(() => writeFileSync(filler, Buffer.alloc(300 * 1024)), { code: "ENOSPC" });
  const line = `${"x".repeat(999)}\n`;
  for (let i = 0; i < 20; i += 1) {
    writeSync(out, line);
    await client.sync(logFile);
  }
  rmSync(filler);
  writeSync(out, "after\n");
  await client.sync(logFile);
  const kept = texts();
  assert.equal(kept[0], "stdout F before");
  assert.deepEqual(kept.slice(-2), ["stdout F after", ""]);
  const whole = kept.filter((text) => text === `stdout F ${line.trimEnd()}`).length;
  const note = kept.at(-3) ?? "";
  assert.match(
    note,
    /^stderr F forage: the disk was full, \d+ bytes of stdout and 0 of stderr are lost here$/,
  );
  assert.equal(Number(/(\d+) bytes/.exec(note)?.[1]), (20 - whole) * 1_000);
  assert.ok(whole < 10, `${whole}`);
  closeSync(out);
});
