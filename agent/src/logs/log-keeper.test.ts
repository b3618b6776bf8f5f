import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Clock, systemClock } from "../clock.ts";
import { LogFile } from "./log-file.ts";
import { LogKeeper, type LogKeeperOptions } from "./log-keeper.ts";

function given(t: TestContext, options: Partial<LogKeeperOptions> & { dir?: string } = {}) {
  const dir = mkdtempSync(join(options.dir ?? tmpdir(), "forage-keeper-"));
  const errors: unknown[] = [];
  const keeper = new LogKeeper({ clock: systemClock, onError: (_, error) => errors.push(error), ...options });
  t.after(async () => {
    await keeper.close();
    rmSync(dir, { recursive: true });
    assert.deepEqual(errors, []);
  });
  return { path: join(dir, "a.log"), keeper };
}

const lines = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => `${from + i}\n`).join("");

/** Asserts that each line is the number after the one before, and returns the last one. */
function assertConsecutive(text: string): number {
  const numbers = text.trimEnd().split("\n").map(Number);
  for (let i = 1; i < numbers.length; i += 1)
    assert.equal(numbers[i], (numbers[i - 1] ?? 0) + 1, `line ${i}`);
  return numbers.at(-1) ?? -1;
}

async function readAll(source: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** A process that appends numbered lines as fast as it can, or as it is told to, like a shim does. */
function startWriter(path: string, count: number, batch: number) {
  const script = `const fs = require("node:fs");
    const fd = fs.openSync(process.argv[1], "a");
    let n = 0;
    const write = () => {
      let text = "";
      for (const end = Math.min(${count}, n + ${batch}); n < end; n++) text += n + "\\n";
      fs.writeSync(fd, text);
      return n < ${count};
    };
    if (process.argv[2] === "free") { while (write()); }
    else process.stdin.on("data", () => { if (!write()) process.exit(); });`;
  return (mode: "free" | "told") => {
    const child = spawn(process.execPath, ["-e", script, path, mode], {
      stdio: [mode === "free" ? "ignore" : "pipe", "ignore", "inherit"],
    });
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    return { ended, more: () => void child.stdin?.write("x") };
  };
}

for (const [where, dir] of [
  ["here", tmpdir()],
  ["on tmpfs", "/dev/shm"],
] as const) {
  test(`a writer at full speed loses no line while its log is trimmed, ${where}`, async (t) => {
    const { path } = given(t, { dir });
    const file = new LogFile(path);
    const count = 3_000_000;
    writeFileSync(path, "");
    const writer = startWriter(path, count, 50)("free");
    let ended = false;
    void writer.ended.then(() => {
      ended = true;
    });
    const modes: (string | undefined)[] = [];
    let last = -1;
    for (let more = true; more; ) {
      more = !ended;
      modes.push(await file.trim(300_000));
      // All of it in one turn: what was rotated out, and what is left.
      const text = (await file.read(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER / 2)).data.toString();
      last = assertConsecutive(text.slice(0, text.lastIndexOf("\n") + 1));
    }
    assert.equal(last, count - 1);
    // How often it is trimmed is up to how busy the machine is.
    assert.ok(modes.some((mode) => mode !== undefined) && !modes.includes("truncate"), `${modes}`);
  });
}

test("a log is kept within bounds by the timer", async (t) => {
  const trimmed: string[] = [];
  const { path, keeper } = given(t, { maxBytes: 300_000, onTrim: (it) => trimmed.push(it) });
  writeFileSync(path, "");
  keeper.keep(path);
  const writer = startWriter(path, 3_000_000, 50)("free");
  await writer.ended;
  const bounded = () => trimmed.length > 0 && statSync(path).blocks * 512 < 350_000;
  await waitUntil(bounded);
  assert.ok(statSync(`${path}.1`).size <= 300_000);
});

async function waitUntil(holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 20_000; !holds(); ) {
    assert.ok(performance.now() < end, "waited in vain");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("a follower gets every line across rotations, and ends with its writer", async (t) => {
  const { path, keeper } = given(t, { maxBytes: 100_000 });
  writeFileSync(path, "");
  keeper.keep(path);
  const count = 100_000;
  const ended = new AbortController();
  const writer = startWriter(path, count, 1_000)("told");
  void writer.ended.then(() => ended.abort());
  writer.more();
  let seen = 0;
  let rest = "";
  for await (const piece of keeper.tail(path, {
    follow: true,
    signal: new AbortController().signal,
    ended: ended.signal,
  })) {
    const text = rest + Buffer.from(piece).toString();
    const end = text.lastIndexOf("\n") + 1;
    rest = text.slice(end);
    for (const line of text.slice(0, end).split("\n").filter(Boolean)) {
      assert.equal(Number(line), seen);
      seen += 1;
      if (seen % 1_000 === 0) {
        await keeper.check();
        writer.more();
      }
    }
  }
  assert.equal(seen, count);
  assert.ok(existsSync(`${path}.1`));
});

test("a tail begins with the last lines, with all, or with what comes", async (t) => {
  const { path, keeper } = given(t);
  writeFileSync(path, lines(0, 100));
  const { signal } = new AbortController();
  assert.equal(await readAll(keeper.tail(path, { follow: false, signal })), lines(0, 100));
  assert.equal(await readAll(keeper.tail(path, { follow: false, signal, lines: 3 })), lines(97, 3));
  assert.equal(await readAll(keeper.tail(path, { follow: false, signal, lines: 0 })), "");
  const following = keeper.tail(path, { follow: true, signal, lines: 0 });
  // Where it begins is settled a little after the call: what is written before that doesn't come.
  const writing = setInterval(() => appendFileSync(path, "new\n"), 20);
  t.after(() => clearInterval(writing));
  const first = Buffer.from((await following.next()).value ?? []).toString();
  clearInterval(writing);
  assert.match(first, /^(new\n)+$/);
  await following.return();
});

test("a follower waits for a log that isn't there yet, and stops at once when told", async (t) => {
  const { path, keeper } = given(t);
  const stop = new AbortController();
  const following = keeper.tail(path, { follow: true, signal: stop.signal });
  const first = following.next();
  setImmediate(() => writeFileSync(path, "hello\n"));
  assert.equal(Buffer.from((await first).value ?? []).toString(), "hello\n");
  const second = following.next();
  stop.abort();
  assert.equal((await second).done, true);
});

test("one timer for all logs, sooner when one grows fast, none when there is nothing to keep", async (t) => {
  const due: { at: number; run: () => void; cancelled: boolean }[] = [];
  let nowMs = 0;
  const clock: Clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, run) {
      const timer = { at: nowMs + delayMs, run, cancelled: false };
      due.push(timer);
      return () => {
        timer.cancelled = true;
      };
    },
  };
  const waiting = () => due.filter((timer) => !timer.cancelled);
  const { path, keeper } = given(t, { clock, maxBytes: 100_000, checkMs: 5_000 });
  assert.equal(waiting().length, 0);
  for (const name of [path, `${path}b`, `${path}c`]) {
    writeFileSync(name, "");
    keeper.keep(name);
  }
  assert.equal(waiting().length, 1);
  const turn = async () => {
    const [timer] = waiting();
    assert.ok(timer);
    timer.cancelled = true;
    nowMs = timer.at;
    timer.run();
    await keeper.check();
    return (waiting()[0]?.at ?? Number.NaN) - nowMs;
  };
  await turn();
  assert.equal(await turn(), 5_000);
  // 50 kB in 5 s: the limit is reached in another 5 s. Then 90 kB: in half a second or so.
  appendFileSync(path, "x".repeat(49_999));
  assert.ok(Math.abs((await turn()) - 5_000) < 1);
  appendFileSync(path, "x".repeat(40_000));
  assert.ok((await turn()) < 2_000);
  for (const name of [path, `${path}b`, `${path}c`]) await keeper.remove(name);
  await turn().catch(() => undefined);
  assert.equal(waiting().length, 0);
});

test("a log that vanishes is no error; one that can't be read is told of", async (t) => {
  const errors: string[] = [];
  const { path, keeper } = given(t, { onError: (at) => errors.push(at) });
  keeper.keep(path);
  await keeper.check();
  assert.deepEqual(errors, []);
  keeper.keep(`${path}/impossible`);
  writeFileSync(path, "");
  await keeper.check();
  assert.deepEqual(errors, [`${path}/impossible`]);
});
